package query

import (
	"errors"
	"testing"
	"unicode/utf8"

	"palimpsest/internal/store"
	"palimpsest/pkg/api"
	"palimpsest/pkg/scope"
)

// Whatever a body holds, it is read or refused with a code and a field, and what
// is read can be published.
func FuzzRecord(f *testing.F) {
	for _, seed := range []string{
		``, `{}`, `[]`, `{"user":"nora","messages":"hello"}`, `{"user":"a","messages":[{"content":"x","timestamp":1,"metadata":{"a":[1]}}]}`,
		`{"user":"a","messages":{"content":"x","id":"1","mode":"backfill"}}`, `{"user":"a","messages":[null]}`, `{"messages":"\ud800"}`,
		`{"user":"a","messages":[{"content":"x","timestamp":{}}]}`, `{"user":null,"agent":"","session":"é","messages":["x"]}`,
	} {
		f.Add(seed)
	}
	s := &Service{config: DefaultConfig()}
	f.Fuzz(func(t *testing.T, text string) {
		body, err := readRecord([]byte(text))
		if err == nil {
			var out said
			if out, err = s.recorded(body, body.In("default")); err == nil {
				for _, p := range out.payloads {
					if p.Content == "" || !utf8.ValidString(p.Content) || p.Validate() != nil {
						t.Errorf("accepted %+v", p)
					}
				}
				return
			}
		}
		p := explained(err)
		if p == nil || p.Code == "" || p.Field == "" || p.Status < 400 || p.Status >= 500 {
			t.Errorf("%q: %v", text, err)
		}
	})
}

// FuzzTokens checks that any token is decoded or refused; the service checks a
// decoded selector again.
func FuzzTokens(f *testing.F) {
	f.Add(seal(token{Scope: scope.Scope{Project: "default", User: "nora"}.Tokens(), Revision: 3}))
	f.Add(seal(store.FactCursor{ID: "f"}))
	f.Add("")
	f.Add("!")
	f.Fuzz(func(t *testing.T, text string) {
		_, err := open[token]("at", text)
		_, err2 := open[store.EpisodeCursor]("cursor", text)
		for _, err := range []error{err, err2} {
			var p *api.Problem
			if err != nil && (!errors.As(err, &p) || p.Code != api.CodeInvalidField) {
				t.Errorf("%q: %v", text, err)
			}
		}
	})
}
