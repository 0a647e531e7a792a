package mem0

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Ids that every memory of the answer has become the scope of the read. The rest is
// a filter of the native API.
func TestConditions(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		filters string
		named   map[string]string
		rest    string
	}{
		{`{"user_id":"ada","run_id":"r"}`, map[string]string{"user": "ada", "session": "r"}, ``},
		{
			`{"AND":[{"user_id":"ada"},{"OR":[{"run_id":"r"},{"run_id":"s"}]}]}`, map[string]string{"user": "ada"},
			`{"OR":[{"field":"session","operator":"eq","value":"r"},{"field":"session","operator":"eq","value":"s"}]}`,
		},
		{`{"AND":[{"user_id":"ada"},{"user_id":"bob"}]}`, map[string]string{"user": "ada"}, `{"field":"user","operator":"eq","value":"bob"}`},
		{`{"user_id":"*"}`, map[string]string{}, `{"field":"user","operator":"exists"}`},
		{`{"app_id":"x"}`, map[string]string{}, `{"field":"metadata.mem0.app_id","operator":"eq","value":"x"}`},
		{
			`{"agent_id":"a","NOT":{"user_id":"ada"}}`, map[string]string{"agent": "a"},
			`{"NOT":{"field":"user","operator":"eq","value":"ada"}}`,
		},
	} {
		c, err := readConditions(json.RawMessage(tc.filters))
		if err != nil {
			t.Errorf("%s: %v", tc.filters, err)
			continue
		}
		if diff := cmp.Diff(tc.named, c.named); diff != "" {
			t.Errorf("%s: %s", tc.filters, diff)
		}
		if got := string(c.filters()); got != tc.rest {
			t.Errorf("%s: rest %s", tc.filters, got)
		}
	}
	for _, filters := range []string{
		`{"OR":[{"user_id":"ada"},{"topic":"x"}]}`, `{"OR":[]}`,
		`{}`, `{"NOT":{"user_id":"ada"}}`, `{"user_id":{"ne":"ada"}}`, `{"metadata":{"user_id":"ada"}}`, `{"user_id":{"between":1}}`, `[]`, `{"user_id":null}`,
	} {
		if c, err := readConditions(json.RawMessage(filters)); err == nil {
			t.Errorf("%s: %+v", filters, c)
		}
	}
}

func TestUnexpired(t *testing.T) {
	t.Parallel()
	c := &conditions{}
	c.unexpired(time.Date(2026, 4, 2, 12, 0, 0, 0, time.UTC))
	const want = `{"OR":[{"NOT":{"field":"metadata.mem0.expiration_date","operator":"exists"}},{"field":"metadata.mem0.expiration_date","operator":"gte","value":"2026-04-02"}]}`
	if got := string(c.filters()); got != want {
		t.Errorf("%s", got)
	}
}
