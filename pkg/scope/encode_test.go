package scope

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestEncode(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]string{
		"alice-1": "alice-1", "Alice": "%41lice", "a/../b": "a%2F%2E%2E%2Fb", "*": "%2A", ">": "%3E", "%": "%25", "_": "%5F", ".": "%2E",
		"é": "%C3%A9", "e\u0301": "e%CC%81", "🎈": "%F0%9F%8E%88", " ": "%20", "a b": "a%20b", strings.Repeat("_", 256): strings.Repeat("%5F", 256),
	} {
		if got := Encode(id); got != want {
			t.Errorf("%q: %s, want %s", id, got, want)
		}
		if got, err := Decode(want); err != nil || got != id {
			t.Errorf("%s: %q, %v; want %q", want, got, err, id)
		}
	}
	for _, token := range []string{
		"", "_", "*", ">", "A", "a.b", "a/b", "a b", "é", "%", "%4", "%4g", "%zz", "%c3%A9", "%C3%a9", "%61", "%2D", "a%", "%%", "%2", "\x00", "\xff", "a_b",
	} {
		if got, err := Decode(token); err == nil {
			t.Errorf("%q was taken for %q", token, got)
		}
	}
}

func TestEncodeIsSafe(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, b := identifiers().Draw(t, "a"), identifiers().Draw(t, "b")
		ea, eb := Encode(a), Encode(b)
		if strings.Trim(ea, "abcdefghijklmnopqrstuvwxyz0123456789-%ABCDEF") != "" {
			t.Fatalf("%q is %q", a, ea)
		}
		if back, err := Decode(ea); err != nil || back != a {
			t.Fatalf("%q is %q is %q (%v)", a, ea, back, err)
		}
		if (a == b) != (ea == eb) || (a == b) != strings.EqualFold(ea, eb) {
			t.Fatalf("%q and %q are %q and %q", a, b, ea, eb)
		}
	})
}

func TestKeys(t *testing.T) {
	t.Parallel()
	for want, s := range map[string]Scope{
		"/user/alice/session/s-1/agent/a/": {"p", "alice", "a", "s-1"},
		"/user/%41lice/":                   {Project: "p", User: "Alice"},
		"/session/s/agent/a/":              {Project: "p", Agent: "a", Session: "s"},
		"/agent/app%3A1/":                  {Project: "p", Agent: "app:1"},
	} {
		if got := s.Key(); got != want {
			t.Errorf("%v: %s, want %s", s, got, want)
		}
		if got, err := ParseKey("p", want); err != nil || got != s {
			t.Errorf("%s: %v, %v; want %v", want, got, err, s)
		}
	}
	for _, key := range []string{
		"", "/", "//", "/user/", "/user//", "user/alice/", "/user/alice", "/agent/a/user/u/", "/user/a/user/b/", "/user/Alice/", "/user/%61/",
		"/User/a/", "/user/alice/x/y/", "/user/alice//", "//user/alice/", "/user/%00/", "/user/" + strings.Repeat("a", 257) + "/",
	} {
		if got, err := ParseKey("p", key); err == nil || got != (Scope{}) {
			t.Errorf("%q was taken for %#v (%v)", key, got, err)
		}
	}
}

// TestKeysKeepApart: keys and tokens round-trip and name one scope only, also
// without regard to case. A key is a prefix of another only if it is an ancestor's.
func TestKeysKeepApart(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, b := scopes().Draw(t, "a"), scopes().Draw(t, "b")
		if back, err := ParseKey(a.Project, a.Key()); err != nil || back != a {
			t.Fatalf("%#v is %s is %#v (%v)", a, a.Key(), back, err)
		}
		if back, err := ParseTokens(a.Tokens()); err != nil || back != a {
			t.Fatalf("%#v is %s is %#v (%v)", a, a.Tokens(), back, err)
		}
		b.Project = a.Project
		if (a == b) != strings.EqualFold(a.Key(), b.Key()) || (a == b) != strings.EqualFold(a.Tokens(), b.Tokens()) {
			t.Fatalf("%#v and %#v share %s or %s", a, b, a.Key(), a.Tokens())
		}
		if strings.HasPrefix(b.Key(), a.Key()) && !ancestor(a, b) {
			t.Fatalf("%s begins %s", a.Key(), b.Key())
		}
		longer := b
		longer.User += "x"
		if strings.HasPrefix(longer.Key(), b.Key()) && b.User != "" {
			t.Fatalf("%s begins %s", b.Key(), longer.Key())
		}
	})
}

// ancestor reports whether b only adds levels to a.
func ancestor(a, b Scope) bool {
	return (a.User == "" || a.User == b.User) && (a.Agent == "" || a.Agent == b.Agent) && (a.Session == "" || a.Session == b.Session)
}

func TestParseTokens(t *testing.T) {
	t.Parallel()
	for tokens, want := range map[string]struct {
		level string
		kind  error
		rest  Scope
	}{
		"p.Alice._.s":        {"user", ErrToken, Scope{Project: "p", Session: "s"}},
		"p.u.%61._":          {"agent", ErrToken, Scope{Project: "p", User: "u"}},
		"P.u._._":            {"project", ErrToken, Scope{User: "u"}},
		"p.u._.":             {"session", ErrToken, Scope{Project: "p", User: "u"}},
		"p.u._":              {"scope", ErrToken, Scope{}},
		"p.u._._._":          {"scope", ErrToken, Scope{}},
		"":                   {"scope", ErrToken, Scope{}},
		"p._._._":            {"scope", ErrMissing, Scope{Project: "p"}},
		"_.u._._":            {"project", ErrMissing, Scope{User: "u"}},
		"p.%0A.a._":          {"user", nil, Scope{Project: "p", Agent: "a"}},
		"p.%FF.a._":          {"user", nil, Scope{Project: "p", Agent: "a"}},
		"p.u." + long + "._": {"agent", nil, Scope{Project: "p", User: "u"}},
	} {
		s, err := ParseTokens(tokens)
		var refused *Error
		if !errors.As(err, &refused) || refused.Level != want.level || s != (Scope{}) {
			t.Errorf("%s: %#v, %v; want level %s", tokens, s, err, want.level)
			continue
		}
		if refused.Unwrap() != want.kind { //nolint:errorlint // the very sentinel
			t.Errorf("%s: %v is of kind %v, want %v", tokens, err, refused.Unwrap(), want.kind)
		}
		if got, _ := ParsePartialTokens(tokens); got != want.rest {
			t.Errorf("%s: partly %#v, want %#v", tokens, got, want.rest)
		}
	}
	if s, err := ParsePartialTokens("_._._._"); err != nil || s != (Scope{}) {
		t.Errorf("%#v, %v", s, err)
	}
}

var long = strings.Repeat("a", 257)

// TestPartition holds values that nats-server 2.15 computed for the transform
// {{partition(16,1,2,3)}} of these tokens.
func TestPartition(t *testing.T) {
	t.Parallel()
	for tokens, want := range map[string]int{
		"default.alice._.s-1":        11,
		"default.alice._.s-2":        11,
		"default.%41lice._._":        2,
		"default._.helper._":         7,
		"acme.%C3%A9.a.%F0%9F%8E%88": 12,
		"a.bc._._":                   12,
		"ab.c._._":                   12,
		"default._._.s":              4,
	} {
		s, err := ParseTokens(tokens)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Partition(16); got != want {
			t.Errorf("%s: %d, want %d", tokens, got, want)
		}
	}
}

func FuzzTokens(f *testing.F) {
	for _, s := range []string{"p.u.a.s", "p._._.%F0%9F%8E%88", "p.%41._._", "_._._._", "p.%2e._._", "...", "p.u._._._", "p.%C3._._"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, tokens string) {
		s, err := ParseTokens(tokens)
		if err == nil && (s.Tokens() != tokens || s.Validate() != nil) {
			t.Fatalf("%q is %#v is %q", tokens, s, s.Tokens())
		}
		part, err2 := ParsePartialTokens(tokens)
		if err == nil && (err2 != nil || part != s) {
			t.Fatalf("%q is %#v, but partly %#v (%v)", tokens, s, part, err2)
		}
	})
}

func FuzzKey(f *testing.F) {
	for _, s := range []string{"/user/alice/", "/session/s/agent/a/", "/user/%2F/session/%25/agent/%5F/", "/user//", "////", "/agent/a/user/u/"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, key string) {
		s, err := ParseKey("p", key)
		if err == nil && (s.Key() != key || s.Validate() != nil) {
			t.Fatalf("%q is %#v is %q", key, s, s.Key())
		}
	})
}
