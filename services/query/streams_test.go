package query

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"palimpsest/internal/store"
	"palimpsest/pkg/api"
	"palimpsest/pkg/scope"
)

func (r *rig) replay(t *testing.T, sel scope.Selector, after uint64) ([]uint64, error) {
	t.Helper()
	var got []uint64
	for line, err := range r.client.Audit(t.Context(), sel, after) {
		if err != nil {
			return got, err
		}
		if line.Project != "default" || line.Subject != nora.Key() || !strings.Contains(string(line.Data), `"rule":"turn"`) {
			t.Errorf("%+v", line)
		}
		got = append(got, line.Sequence)
	}
	return got, nil
}

func TestAudit(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for i := 1; i <= 5; i++ {
		r.journal.effects = append(r.journal.effects, effect(i))
	}
	for _, tc := range []struct {
		sel   scope.Selector
		after uint64
		want  []uint64
	}{
		{everyone, 0, []uint64{10, 20, 30, 40, 50}},
		{scope.Selector{User: ptr("nora")}, 30, []uint64{40, 50}},
		{scope.Selector{User: ptr("ben")}, 0, nil},
		{everyone, 99, nil},
	} {
		got, err := r.replay(t, tc.sel, tc.after)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%v after %d (-want +got):\n%s", tc.sel, tc.after, diff)
		}
	}
	a := r.do(http.MethodGet, "/v1/audit?all=true&limit=2", "")
	if n := strings.Count(a.body, "\n"); n != 2 || a.header.Get("Content-Type") != "application/x-ndjson" {
		t.Errorf("%d lines, %v", n, a.header)
	}
	if a := r.do(http.MethodGet, "/v1/audit?all=true&project=rival", ""); a.status != 200 || a.body != "" {
		t.Errorf("%d %q", a.status, a.body)
	}
}

func TestAuditFailsBeforeTheFirstByte(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.journal.effects, r.journal.failAt = append(r.journal.effects, effect(1)), 1
	a := r.do(http.MethodGet, "/v1/audit?all=true", "")
	if p := a.problem(t); p.Status != 503 || p.Code != api.CodeStoreUnavailable || a.header.Get("Retry-After") == "" {
		t.Errorf("%+v", p)
	}
	if _, err := r.replay(t, everyone, 0); err == nil || !strings.Contains(err.Error(), "does not answer") {
		t.Errorf("error %v", err)
	}
}

func TestAuditIsCutInTheMiddle(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for i := 1; i <= 400; i++ { // more than is held back before the first byte
		r.journal.effects = append(r.journal.effects, effect(i))
	}
	r.journal.failAt = 399
	got, err := r.replay(t, everyone, 0)
	if err == nil || len(got) == 0 || len(got) >= 399 {
		t.Fatalf("%d lines, error %v", len(got), err)
	}
	r.journal.failAt = -1
	rest, err := r.replay(t, everyone, got[len(got)-1])
	if err != nil || len(got)+len(rest) != 400 {
		t.Errorf("%d and %d lines, %v", len(got), len(rest), err)
	}
}

func TestAuditStopsReading(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for i := 1; i <= 400; i++ {
		r.journal.effects = append(r.journal.effects, effect(i))
	}
	for line, err := range r.client.Audit(t.Context(), everyone, 0) {
		if err != nil || line.Sequence != 10 {
			t.Errorf("%+v, %v", line, err)
		}
		break
	}
}

func TestExport(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ben := fact1("b", 1, "Ben keeps <bees>.")
	ben.Scope = scope.Scope{Project: "default", User: "ben"}
	r.store.facts = []store.Fact{fact1("z", 1, "z"), fact1("a", 1, "a"), ben}
	export := func(content bool) []string {
		var lines []string
		for line, err := range r.client.Export(t.Context(), everyone, content) {
			if err != nil {
				t.Fatal(err)
			}
			lines = append(lines, string(line))
		}
		return lines
	}
	whole := export(false)
	if len(whole) != 5 || !strings.Contains(whole[0], `"kind":"fact"`) || !strings.Contains(whole[4], `"kind":"watermark"`) || !strings.Contains(whole[0], "<bees>") {
		t.Errorf("%q", whole)
	}
	if !strings.Contains(whole[0], "created_at") || strings.Contains(export(true)[0], "created_at") {
		t.Error("wall-clock fields")
	}
	for _, content := range []bool{false, true} {
		sum := sha256.Sum256([]byte(strings.Join(export(content), "\n") + "\n"))
		d, err := r.client.Digest(t.Context(), content)
		if want := (api.Digest{Digest: hex.EncodeToString(sum[:]), Content: content}); err != nil || d != want {
			t.Errorf("digest %+v, %v, want %+v", d, err, want)
		}
	}
	r.store.fail(errDown)
	if p := r.do(http.MethodGet, "/v1/digest", "").problem(t); p.Status != 503 {
		t.Errorf("%+v", p)
	}
	if p := r.do(http.MethodGet, "/v1/export?all=true", "").problem(t); p.Status != 503 {
		t.Errorf("%+v", p)
	}
}

func TestExportOfAnotherProject(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.store.facts = []store.Fact{fact1("z", 1, "z")}
	if a := r.do(http.MethodGet, "/v1/export?all=true&project=rival", ""); a.status != 200 || a.body != "" {
		t.Errorf("%d %s", a.status, a.body)
	}
}
