package redis

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"palimpsest/internal/store"
	"palimpsest/pkg/scope"
)

func TestServerWarnings(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		info fields
		want int
	}{
		"good":       {fields{"maxmemory_policy": "noeviction", "aof_enabled": "1"}, 0},
		"evicts":     {fields{"maxmemory_policy": "allkeys-lru", "aof_enabled": "1"}, 1},
		"no file":    {fields{"maxmemory_policy": "noeviction", "aof_enabled": "0"}, 1},
		"both":       {fields{"maxmemory_policy": "volatile-lru", "aof_enabled": "0"}, 2},
		"cuts short": {fields{"search_timeout_policy": "return"}, 1},
		"fails":      {fields{"search_timeout_policy": "fail", "search_version": "2.10.5"}, 0},
		"old":        {fields{"search_version": "2.8.13"}, 1},
		"new":        {fields{"search_version": "8.0.2"}, 0},
	} {
		if got := serverWarnings(tc.info); len(got) != tc.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestErrorsAreTheContracts(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]error{
		"OOM command not allowed when used memory > 'maxmemory'.": store.ErrFull,
		"No such index pal:g1":           store.ErrDamaged,
		"pal:g1: no such index":          store.ErrDamaged,
		"Timeout limit was reached":      errPartial,
		"redis: client is closed":        nil,
		"WRONGTYPE Operation against it": nil,
	} {
		err := explain(errors.New(text))
		if err == nil || want != nil && !errors.Is(err, want) {
			t.Errorf("%q: %v, want %v", text, err, want)
		}
	}
}

func TestAWarningIsAnError(t *testing.T) {
	t.Parallel()
	row := map[any]any{"id": "x", "extra_attributes": map[any]any{"b": "{}"}}
	reply := map[any]any{"total_results": int64(3), "results": []any{row}, "warning": []any{}}
	if a, err := parseAnswer(reply); err != nil || a.total != 3 || a.rows[0].fields["b"] != "{}" {
		t.Errorf("%+v, %v", a, err)
	}
	reply["warning"] = []any{"Timeout limit was reached"}
	if _, err := parseAnswer(reply); !errors.Is(err, errPartial) {
		t.Errorf("with a warning: %v", err)
	}
}

// TestKeys: one slot a scope, whatever its identifiers hold, and no two rows
// under one key.
func TestKeys(t *testing.T) {
	t.Parallel()
	id := rapid.OneOf(rapid.StringN(1, 8, 32), rapid.SampledFrom([]string{"a", "a:b", "a/b", "{a}", "}", "a,b", "A", "caf\u00e9", "cafe\u0301", "_"}))
	rapid.Check(t, func(t *rapid.T) {
		l := layout{"pal", 1}
		draw := func(label string) (scope.Scope, string) {
			return scope.Scope{Project: id.Draw(t, label+" project"), User: id.Draw(t, label+" user")}, id.Draw(t, label+" id")
		}
		s1, id1 := draw("one")
		s2, id2 := draw("two")
		k1, k2 := l.place(s1).row(kindFact, id1), l.place(s2).row(kindFact, id2)
		if (k1 == k2) != (s1 == s2 && id1 == id2) {
			t.Fatalf("%v %q and %v %q: %q, %q", s1, id1, s2, id2, k1, k2)
		}
		if strings.Count(k1, "{") != 1 || strings.Count(k1, "}") != 1 || !strings.Contains(k1, ":{"+l.place(s1).tag+"}:") {
			t.Fatalf("braces of %q", k1)
		}
		if a, b := levelTag(s1.User), levelTag(s2.User); strings.EqualFold(a, b) != (s1.User == s2.User) || strings.ContainsAny(a, ", _{}|") {
			t.Fatalf("tags %q and %q", a, b)
		}
		if got, err := owner(fields{"p": scope.Encode(s1.Project), "u": levelTag(s1.User), "a": absentLevel, "x": absentLevel}); err != nil || got != s1 {
			t.Fatalf("owner %v, %v, want %v", got, err, s1)
		}
	})
}

// TestTermsAreWordsToTheIndex: its tokenizer must neither split a term, nor fold
// it, nor take it for a number or for syntax.
func TestTermsAreWordsToTheIndex(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	rapid.Check(t, func(t *rapid.T) {
		for i, term := range indexTerms(rapid.String().Draw(t, "text") + " 1e5 inf 茶 don't") {
			if strings.Trim(term, "abcdefghijklmnopqrstuvwxyz0123456789") != "" || term[0] != 'w' && term[0] != 'x' {
				t.Fatalf("term %d is %q", i, term)
			}
		}
		raw := rapid.StringN(1, 6, 20).Draw(t, "term")
		if other, known := seen[indexTerm(raw)]; known && other != raw {
			t.Fatalf("%q and %q are both %q", raw, other, indexTerm(raw))
		}
		seen[indexTerm(raw)] = raw
	})
}

func TestConfig(t *testing.T) {
	t.Parallel()
	good := Config{URL: "redis://127.0.0.1:6379/0"}
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*Config){
		"url": func(c *Config) { c.URL = "" }, "namespace": func(c *Config) { c.Namespace = "a{b" }, "vectors": func(c *Config) { c.Vectors = "ivf" },
		"m": func(c *Config) { c.M = -1 }, "timeout": func(c *Config) { c.QueryTimeout = -1 }, "threshold": func(c *Config) { c.DecayThreshold = 1 },
	} {
		c := good
		change(&c)
		if c.Validate() == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if _, err := connect("http://secret@host", nil); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("connect: %v", err)
	}
}
