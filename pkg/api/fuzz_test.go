package api_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"palimpsest/pkg/api"
)

func FuzzMessages(f *testing.F) {
	for _, s := range []string{`"hello"`, `{"content":"hello","role":"user"}`, `[{"content":"a"},{"content":"b"}]`, `null`, `[]`, `[null]`, `7`, `{`, ` {"content":1}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var m, back api.Messages
		if json.Unmarshal(raw, &m) != nil {
			return
		}
		text, err := json.Marshal(m)
		if err != nil {
			t.Fatalf("write what was read from %s: %v", raw, err)
		}
		if err := json.Unmarshal(text, &back); err != nil {
			t.Fatalf("read what was written: %v\n%s", err, text)
		}
		if twice, err := json.Marshal(back); err != nil || string(twice) != string(text) {
			t.Fatalf("%s became %s: %v", text, twice, err)
		}
	})
}

func FuzzInstant(f *testing.F) {
	for _, s := range []string{`"2026-01-02"`, `"2026-01-02T03:04:05.678+01:00"`, `null`, `"0000-01-01"`, `"9999-12-31T23:59:59.999999999-23:59"`, `7`, `""`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var at, back api.Instant
		if json.Unmarshal(raw, &at) != nil {
			return
		}
		text, err := json.Marshal(at)
		if err != nil {
			t.Fatalf("write what was read from %s: %v", raw, err)
		}
		if err := json.Unmarshal(text, &back); err != nil || !back.Equal(at.Time) {
			t.Fatalf("%s became %s: %v\n%s", raw, text, err, cmp.Diff(at.Time, back.Time))
		}
	})
}
