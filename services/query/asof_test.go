package query

import (
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"palimpsest/internal/store"
	"palimpsest/pkg/api"
	"palimpsest/pkg/client"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// TestAsOf: a fact is learned at minute 1, restated at 2 as true since an hour ago,
// and closed at 3; another is learned at 2.
func TestAsOf(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	minute := func(n int) time.Time { return noon.Add(time.Duration(n) * time.Minute) }
	oslo, tea := fact1("f", 1, "Nora lives in Oslo."), fact1("g", 1, "Nora likes tea.")
	oslo.ValidFrom, oslo.Metadata = noon.Add(-48*time.Hour), map[string]any{"topic": "home"}
	bergen := oslo
	bergen.Revision, bergen.Text, bergen.ValidFrom = 2, "Nora lives in Bergen.", noon.Add(-time.Hour)
	before := oslo
	before.ValidUntil = &bergen.ValidFrom
	gone := bergen
	gone.Revision, gone.ValidUntil = 3, ptr(minute(3))
	for i, change := range []events.EffectCommitted{
		{Facts: []events.Fact{oslo.Fact}},
		{Facts: []events.Fact{bergen.Fact, tea.Fact}, Versions: []events.Fact{before.Fact}},
		{Facts: []events.Fact{gone.Fact}, Versions: []events.Fact{bergen.Fact}},
	} {
		e := committed(i + 1)
		e.Data.Facts, e.Data.Versions = change.Facts, change.Versions
		e.Data.Scope, e.Scope = nora, nora
		r.journal.commit(e)
	}
	r.store.facts = []store.Fact{gone, tea}
	user := nora.User
	sel := scope.Selector{Project: "default", User: &user}
	home := []byte(`{"field":"metadata.topic","operator":"eq","value":"home"}`)
	for name, tc := range map[string]struct {
		list client.ListFacts
		want []string
	}{
		"before":      {client.ListFacts{AsOf: minute(0)}, nil},
		"learned":     {client.ListFacts{AsOf: minute(1)}, []string{"Nora lives in Oslo."}},
		"just before": {client.ListFacts{AsOf: minute(2).Add(-time.Nanosecond)}, []string{"Nora lives in Oslo."}},
		"restated":    {client.ListFacts{AsOf: minute(2)}, []string{"Nora likes tea.", "Nora lives in Bergen."}},
		"of before":   {client.ListFacts{AsOf: minute(2), ValidAt: noon.Add(-24 * time.Hour)}, []string{"Nora lives in Oslo."}},
		"closed":      {client.ListFacts{AsOf: minute(4)}, []string{"Nora likes tea."}},
		"closed too":  {client.ListFacts{AsOf: minute(4), Closed: true}, []string{"Nora likes tea.", "Nora lives in Bergen."}},
		"filtered":    {client.ListFacts{AsOf: minute(2), Filters: home}, []string{"Nora lives in Bergen."}},
		"of no kind":  {client.ListFacts{AsOf: minute(2), Kinds: []string{"opinion"}}, nil},
		"cut":         {client.ListFacts{AsOf: minute(2), Limit: 1}, []string{"Nora likes tea."}},
	} {
		page, err := r.client.Facts(t.Context(), sel, tc.list)
		if diff := cmp.Diff(tc.want, factTexts(page.Facts)); diff != "" || err != nil {
			t.Errorf("%s: %v\n%s", name, err, diff)
		}
		if tc.list.Limit == 1 {
			tc.list.Cursor = page.Next
			page, err = r.client.Facts(t.Context(), sel, tc.list)
			if diff := cmp.Diff([]string{"Nora lives in Bergen."}, factTexts(page.Facts)); diff != "" || err != nil || page.Next != "" {
				t.Errorf("the next page: %v\n%s", err, diff)
			}
		}
	}
	for n, want := range []string{"", "Nora lives in Oslo.", "Nora lives in Bergen.", ""} {
		f, err := r.client.FactAsOf(t.Context(), "f", minute(n))
		if (err == nil) != (want != "") || f.Text != want {
			t.Errorf("at minute %d: %q, %v", n, f.Text, err)
		}
	}
	if f := into[api.Fact](t, r.do(http.MethodGet, "/v1/facts/f?as_of="+minute(2).Format(time.RFC3339)+"&valid_at=2026-04-01", ""), 200); f.Text != "Nora lives in Oslo." {
		t.Errorf("of before: %q", f.Text)
	}
	for path, field := range map[string]string{
		"/v1/facts/f?as_of=then": "as_of", "/v1/facts/f?revision=1&as_of=2026-01-01": "as_of", "/v1/facts?user=nora&as_of=then": "as_of",
		"/v1/facts?user=nora&as_of=2026-01-01&entity=Oslo": "entity",
	} {
		if p := r.do(http.MethodGet, path, "").problem(t); p.Status != 400 || p.Field != field {
			t.Errorf("%s: %+v", path, p)
		}
	}
}
