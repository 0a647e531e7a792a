package scope

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// hostile are identifiers that something, somewhere, takes for something else.
func hostile() []string {
	return []string{
		"a/../b", "..", "/", "//", "*", ">", "%", "%25", "%2f", "_", "__", ".", "-", "a.b", "a b", " ", "'", `"`, `\`, "{tag}", "@", "|",
		"Alice", "alice", "ALICE", "alicex", "alice/", "user", "/user/alice/", "session", "agent", "null", "0", "𝒳", "🎈", "👩‍👩‍👧",
		"caf\u00e9", "cafe\u0301", "\u212a", "k", "ſ", "s", "İ", "i", "ß", "\u202e", "\ufeff", "\u00a0", "日本", strings.Repeat("é", 128), strings.Repeat("a", 256),
	}
}

// identifiers draws any identifier that is allowed, the hostile ones often.
func identifiers() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.SampledFrom(hostile()),
		rapid.StringN(1, 40, MaxIdentifier).Filter(func(s string) bool { return checkIdentifier("", s) == nil }),
		rapid.StringMatching(`[aA/%._*>-]{1,6}`),
	)
}

func scopes() *rapid.Generator[Scope] {
	return rapid.Custom(func(t *rapid.T) Scope {
		level := rapid.OneOf(rapid.Just(""), identifiers())
		return Scope{
			Project: identifiers().Draw(t, "project"),
			User:    level.Draw(t, "user"), Agent: level.Draw(t, "agent"), Session: level.Draw(t, "session"),
		}
	}).Filter(func(s Scope) bool { return s.Validate() == nil })
}

func TestValidate(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		scope Scope
		level string
		kind  error
	}{
		"user alone":              {Scope{Project: "p", User: "u"}, "", nil},
		"agent alone":             {Scope{Project: "p", Agent: "a"}, "", nil},
		"session alone":           {Scope{Project: "p", Session: "s"}, "", nil},
		"256 bytes":               {Scope{Project: "p", User: strings.Repeat("é", 128)}, "", nil},
		"nothing":                 {Scope{}, "project", ErrMissing},
		"no project":              {Scope{User: "u"}, "project", ErrMissing},
		"project alone":           {Scope{Project: "p"}, "scope", ErrMissing},
		"257 bytes":               {Scope{Project: "p", User: strings.Repeat("a", 257)}, "user", nil},
		"long project":            {Scope{Project: strings.Repeat("a", 257), User: "u"}, "project", nil},
		"NUL":                     {Scope{Project: "p", Agent: "a\x00b"}, "agent", nil},
		"newline":                 {Scope{Project: "p", Session: "a\nb"}, "session", nil},
		"C1 control":              {Scope{Project: "p", User: "a\u0085"}, "user", nil},
		"delete":                  {Scope{Project: "p", User: "\x7f"}, "user", nil},
		"invalid UTF-8":           {Scope{Project: "p", User: "a\xff"}, "user", nil},
		"surrogate half in UTF-8": {Scope{Project: "p", User: "\xed\xa0\x80"}, "user", nil},
		"overlong UTF-8":          {Scope{Project: "p", User: "\xc0\xaf"}, "user", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := tc.scope.Validate()
			if tc.level == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			var refused *Error
			if !errors.As(err, &refused) || refused.Level != tc.level {
				t.Fatalf("err = %v, want one of level %s", err, tc.level)
			}
			if !errors.Is(err, tc.kind) && tc.kind != nil || tc.kind == nil && errors.Is(err, ErrMissing) {
				t.Errorf("err = %v, want kind %v", err, tc.kind)
			}
		})
	}
	for _, id := range hostile() {
		if err := (Scope{Project: id, User: id, Agent: id, Session: id}).Validate(); err != nil {
			t.Errorf("%q: %v", id, err)
		}
	}
}

func TestFact(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ in, want Scope }{
		{Scope{"p", "u", "a", "s"}, Scope{"p", "u", "a", ""}},
		{Scope{"p", "u", "", "s"}, Scope{"p", "u", "", ""}},
		{Scope{"p", "", "a", "s"}, Scope{"p", "", "a", "s"}},
		{Scope{"p", "", "", "s"}, Scope{"p", "", "", "s"}},
		{Scope{"p", "", "a", ""}, Scope{"p", "", "a", ""}},
	} {
		if got := tc.in.Fact(); got != tc.want {
			t.Errorf("%v: %v, want %v", tc.in, got, tc.want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		s := scopes().Draw(t, "scope")
		f := s.Fact()
		if f.Fact() != f || !f.IsFact() || f.Validate() != nil {
			t.Fatalf("%v: %v, then %v", s, f, f.Fact())
		}
		if s.Partition(16) != f.Partition(16) {
			t.Fatalf("%v and its fact scope lie in two partitions", s)
		}
	})
}

func TestJSON(t *testing.T) {
	t.Parallel()
	for want, s := range map[string]Scope{
		`{"project":"p","user":"u","agent":"a","session":"s"}`: {"p", "u", "a", "s"},
		`{"project":"p","agent":"a"}`:                          {Project: "p", Agent: "a"},
	} {
		got, err := json.Marshal(s)
		if err != nil || string(got) != want {
			t.Errorf("%s, %v; want %s", got, err, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		s := scopes().Draw(t, "scope")
		text, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		var back Scope
		if err := json.Unmarshal(text, &back); err != nil || back != s {
			t.Fatal(cmp.Diff(s, back), err)
		}
	})
}

func TestStringNamesNoOther(t *testing.T) {
	t.Parallel()
	a, b := Scope{Project: "p/user/u", Agent: "a"}, Scope{Project: "p", User: "u", Agent: "a"}
	if a.String() == b.String() {
		t.Errorf("%#v and %#v are both %s", a, b, a)
	}
}
