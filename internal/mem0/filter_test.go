package mem0

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func text1(s string) *string { return &s }

var sample = Memory{
	ID: "m", Memory: "Ada likes Python", UserID: text1("ada"), AppID: text1("app"), Categories: []string{"work"},
	Metadata:  map[string]any{"tag": "home", "n": 3.0, "list": []any{"a", "b"}},
	CreatedAt: time.Date(2026, 4, 2, 12, 0, 0, 0, time.UTC), runs: []string{"r1", "r2"},
}

func TestFilterMatches(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		filter string
		want   bool
	}{
		{`{"user_id":"ada"}`, true},
		{`{"user_id":"bob"}`, false},
		{`{"user_id":"*"}`, true},
		{`{"agent_id":"*"}`, false},
		{`{"user_id":{"ne":"ada"}}`, false},
		{`{"run_id":"r2"}`, true},
		{`{"user_id":{"in":["bob","ada"]}}`, true},
		{`{"AND":[{"user_id":"ada"},{"app_id":"app"}]}`, true},
		{`{"AND":[{"user_id":"ada"},{"app_id":"x"}]}`, false},
		{`{"OR":[{"user_id":"bob"},{"app_id":"app"}]}`, true},
		{`{"OR":[]}`, false},
		{`{"NOT":{"user_id":"bob"}}`, true},
		{`{"NOT":[{"user_id":"bob"},{"app_id":"app"}]}`, false},
		{`{"categories":{"in":["work","home"]}}`, true},
		{`{"categories":{"contains":"or"}}`, true},
		{`{"metadata":{"tag":"home","n":3}}`, true},
		{`{"metadata":{"n":{"gt":3}}}`, false},
		{`{"metadata":{"n":{"gte":3,"lt":4}}}`, true},
		{`{"metadata":{"list":"b"}}`, true},
		{`{"metadata":{"none":{"ne":"x"}}}`, true},
		{`{"metadata":{"tag":{"nin":["a"]}}}`, true},
		{`{"keywords":{"icontains":"PYTHON"}}`, true},
		{`{"text":{"contains":"PYTHON"}}`, false},
		{`{"memory_ids":["m","n"]}`, true},
		{`{"created_at":{"gte":"2026-04-02","lte":"2026-04-02"}}`, true},
		{`{"created_at":{"lt":"2026-04-02T12:00:00Z"}}`, false},
		{`{"created_at":{"gt":1}}`, true},
		{`{"expiration_date":{"lt":"2030-01-01"}}`, false},
	} {
		var raw map[string]any
		if err := json.Unmarshal([]byte(tc.filter), &raw); err != nil {
			t.Fatal(err)
		}
		f, err := readFilter(raw)
		if err != nil {
			t.Errorf("%s: %v", tc.filter, err)
			continue
		}
		m := sample
		if got := f.matches(&m); got != tc.want {
			t.Errorf("%s: %v", tc.filter, got)
		}
	}
}

// Only what every memory of the answer has narrows the read.
func TestFilterScope(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		filter string
		named  map[string]string
		scoped bool
	}{
		{`{"user_id":"ada","run_id":"r"}`, map[string]string{"user_id": "ada", "run_id": "r"}, true},
		{`{"AND":[{"user_id":"ada"},{"OR":[{"run_id":"r"},{"run_id":"s"}]}]}`, map[string]string{"user_id": "ada"}, true},
		{`{"OR":[{"user_id":"ada"},{"user_id":"bob"}]}`, map[string]string{}, true},
		{`{"user_id":"*"}`, map[string]string{}, true},
		{`{"NOT":{"user_id":"ada"}}`, map[string]string{}, false},
		{`{"user_id":{"ne":"ada"}}`, map[string]string{}, false},
		{`{"metadata":{"user_id":"ada"}}`, map[string]string{}, false},
		{`{}`, map[string]string{}, false},
	} {
		var raw map[string]any
		if err := json.Unmarshal([]byte(tc.filter), &raw); err != nil {
			t.Fatal(err)
		}
		f, err := readFilter(raw)
		if err != nil {
			t.Errorf("%s: %v", tc.filter, err)
			continue
		}
		if diff := cmp.Diff(tc.named, f.named); diff != "" || f.scoped != tc.scoped {
			t.Errorf("%s: scoped %v, %s", tc.filter, f.scoped, diff)
		}
	}
}

// An answer without an error has evaluated all of the filter.
func FuzzFilter(f *testing.F) {
	for _, seed := range []string{
		`{"AND":[{"user_id":"ada"},{"NOT":[{"metadata":{"a":{"gt":1}}}]}]}`, `{"user_id":{"in":1}}`, `{"OR":{}}`,
		`{"color":"red"}`, `{"user_id":""}`, `{"created_at":{"between":[1,2]}}`, `{"AND":[1]}`, `{"metadata":1}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var raw map[string]any
		if json.Unmarshal([]byte(text), &raw) != nil {
			return
		}
		got, err := readFilter(raw)
		if err != nil {
			return
		}
		m := sample
		got.matches(&m)
		for name, id := range got.named {
			other := sample
			other.UserID, other.AgentID, other.AppID, other.runs = nil, nil, nil, nil
			if got.matches(&other) {
				t.Errorf("%s: %s is %q and a memory without it matches", text, name, id)
			}
		}
	})
}
