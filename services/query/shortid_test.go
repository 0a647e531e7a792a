package query

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"palimpsest/internal/store"
	"palimpsest/pkg/api"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

func TestShortIDs(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	const one, twin, other = "0190a6a0-0000-7000-8000-0000deadbeef", "0190a6a0-0000-7000-8000-0000cafebabe", "0190a6a0-0000-7000-8000-1111cafebabe"
	gone, elsewhere, rival := closed(fact1(one, 2, "a")), fact1(other, 1, "Lives in 東京"), fact1("0190a6a0-0000-7000-8000-2222deadbeef", 1, "r")
	elsewhere.Scope = scope.Scope{Project: "default", User: "a/b 👩‍🔬"}
	rival.Scope.Project = "rival"
	r.store.facts = []store.Fact{gone, fact1(twin, 1, "b"), elsewhere, rival}
	for path, want := range map[string]struct {
		status       int
		id, complain string
	}{
		"/v1/facts/deadbeef/history":               {200, one, ""},
		"/v1/facts/DEADBEEF/history":               {200, one, ""},
		"/v1/facts/" + one + "/history":            {200, one, ""},
		"/v1/facts/deadbeef/history?project=rival": {200, rival.ID, ""},
		"/v1/facts/cafebabe":                       {400, "", "id: cafebabe is the end of 2 ids: "},
		"/v1/facts/cafebabe/explain":               {400, "", other + " (Lives in 東京)"},
		"/v1/facts/00000000":                       {404, "", ""},
		"/v1/facts/eadbeef/history":                {404, "", ""}, // no short id, and no whole one
		"/v1/facts/0deadbeef/history":              {404, "", ""},
	} {
		a := r.do(http.MethodGet, path, "")
		if a.status != want.status || want.id != "" && !strings.Contains(a.body, `"`+want.id+`"`) {
			t.Errorf("%s: %d %s, want %d %s", path, a.status, a.body, want.status, want.id)
		}
		if want.complain != "" {
			if p := into[api.Problem](t, a, 400); !strings.Contains(p.Error(), want.complain) {
				t.Errorf("%s: %v, want %q", path, p.Error(), want.complain)
			}
		}
	}
}

func TestManyCandidatesAreCounted(t *testing.T) {
	t.Parallel()
	found := candidates{short: "cafebabe"}
	for i := range 7 {
		found.add(fmt.Sprint(i, "cafebabe"), "text")
	}
	if _, err := found.only(); err == nil || !strings.Contains(err.Error(), "7 ids") || strings.Count(err.Error(), "(text)") != mostNamed {
		t.Errorf("%v", err)
	}
}

func TestCommandsTakeShortIDs(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	f := fact1("0190a6a0-0000-7000-8000-0000deadbeef", 1, "a")
	hold := held("00112233445566778899aabbccddeeff", f.ID, 1)
	r.store.facts, r.store.holds = []store.Fact{f}, []store.Hold{hold}
	r.obey(func(events.CommandRequested) events.Outcome { return changed(events.ChangeUpdate, f.ID) })
	if _, err := r.client.Confirm(t.Context(), "deadbeef", 1); err != nil {
		t.Fatal(err)
	}
	if c := r.command(t); c.FactID != f.ID || c.IfMatch[f.ID] != 1 {
		t.Errorf("confirm: %+v", c)
	}
	if _, err := r.client.Release(t.Context(), "ccddeeff"); err != nil {
		t.Fatal(err)
	}
	sent := r.publisher.sent()
	if c, ok := sent[len(sent)-1].p.(events.CommandRequested); !ok || c.HoldID != hold.ID {
		t.Errorf("release: %+v", sent[len(sent)-1])
	}
	if _, err := r.client.Release(t.Context(), "00000000"); err == nil {
		t.Error("a hold that nobody knows is released")
	}
}
