package query

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"palimpsest/internal/auth"
	"palimpsest/pkg/api"
)

// fakeErasures remembers what it was asked.
type fakeErasures struct {
	asked    []string
	receipts map[string]api.Receipt
}

func (f *fakeErasures) Ask(_ context.Context, project, user, key string) (string, error) {
	f.asked = append(f.asked, project+"/"+user+key)
	return "job", nil
}

func (f *fakeErasures) AskAll(ctx context.Context, project string, users []string, key string) (ids []string, err error) {
	for _, user := range users {
		id, err := f.Ask(ctx, project, user, key)
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, nil
}

func (f *fakeErasures) Get(_ context.Context, id string) (api.Receipt, error) {
	r, ok := f.receipts[id]
	if !ok {
		return r, ErrNoErasure
	}
	return r, nil
}

func TestErase(t *testing.T) {
	t.Parallel()
	done := noon
	f := &fakeErasures{receipts: map[string]api.Receipt{
		"job":   {ID: "job", Project: "default"},
		"done":  {ID: "done", Project: "default", FinishedAt: &done, Signature: "ab"},
		"other": {ID: "other", Project: "other"},
	}}
	r := newRig(t, func(_ *Config, d *Deps) { d.Erasures = f })
	a := r.do(http.MethodDelete, "/v1/scopes?user=nora&erase=true", "")
	if a.status != http.StatusAccepted || !strings.Contains(a.body, `"correlation_id":"job"`) || len(f.asked) != 1 || f.asked[0] != "default/nora" {
		t.Errorf("%d %s, asked %v", a.status, a.body, f.asked)
	}
	if a := r.do(http.MethodDelete, "/v1/scopes?user=nora&erase=true", "", "Idempotency-Key", "#1"); a.status != http.StatusAccepted || f.asked[1] != "default/nora#1" {
		t.Errorf("with a key: %d %s, asked %v", a.status, a.body, f.asked)
	}
	for id, want := range map[string]api.Erasure{"job": {Status: "pending"}, "done": {Status: "done"}} {
		var got api.Erasure
		a := r.do(http.MethodGet, "/v1/erasures/"+id, "")
		if err := json.Unmarshal([]byte(a.body), &got); err != nil || got.Status != want.Status || (got.Receipt != nil) != (want.Status == "done") {
			t.Errorf("%s: %d %s, %v", id, a.status, a.body, err)
		}
	}
	for _, id := range []string{"other", "none"} {
		if p := r.do(http.MethodGet, "/v1/erasures/"+id, "").problem(t); p.Status != http.StatusNotFound || p.Field != "id" {
			t.Errorf("%s: %+v", id, p)
		}
	}
	for query, field := range map[string]string{
		"agent=a1&erase=true": "user", "session=s1&erase=true": "user", "user=nora&agent=a1&erase=true": "erase", "user=nora&session=s1&erase=true": "erase",
	} {
		if p := r.do(http.MethodDelete, "/v1/scopes?"+query, "").problem(t); p.Status != http.StatusBadRequest || p.Field != field {
			t.Errorf("%s: %+v", query, p)
		}
	}
	if len(f.asked) != 2 || len(r.publisher.sent()) > 0 {
		t.Errorf("asked %v, published %v", f.asked, r.publisher.sent())
	}
}

// TestEraseElsewhere: engines that cannot erase change nothing.
func TestEraseElsewhere(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	owned(r)
	if p := r.do(http.MethodDelete, "/v1/scopes?user=nora&erase=true", "").problem(t); p.Status != http.StatusNotImplemented || p.Code != api.CodeNotImplemented {
		t.Errorf("%+v", p)
	}
	if p := r.do(http.MethodGet, "/v1/erasures/job", "").problem(t); p.Status != http.StatusNotFound {
		t.Errorf("%+v", p)
	}
	if len(r.publisher.sent()) > 0 {
		t.Errorf("published %v", r.publisher.sent())
	}
}

// TestEraseTakesAnAdmin: a key that closes facts does not erase.
func TestEraseTakesAnAdmin(t *testing.T) {
	t.Parallel()
	h := guarded(t)
	f := &fakeErasures{}
	h.rig.service.deps.Erasures = f
	for role, want := range map[auth.Role]int{
		auth.Reader: http.StatusForbidden, auth.Writer: http.StatusForbidden, auth.Operator: http.StatusForbidden, auth.Admin: http.StatusAccepted,
	} {
		_, token := h.key(t, auth.Key{Project: "acme", Role: role})
		if a := h.rig.do(http.MethodDelete, "/v1/scopes?user=nora&erase=true", "", "X-API-Key", token); a.status != want {
			t.Errorf("%s: %d %s, want %d", role, a.status, a.body, want)
		}
	}
	if len(f.asked) != 1 || f.asked[0] != "acme/nora" {
		t.Errorf("asked %v", f.asked)
	}
}
