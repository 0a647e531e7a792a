package redis

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
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

// replied is a reply of protocol 3: strings, lists and maps (of pairs) of such.
func replied(v any) string {
	switch v := v.(type) {
	case string:
		return fmt.Sprintf("$%d\r\n%s\r\n", len(v), v)
	case int:
		return fmt.Sprintf(":%d\r\n", v)
	case []any:
		out := fmt.Sprintf("*%d\r\n", len(v))
		for _, item := range v {
			out += replied(item)
		}
		return out
	case [][2]any:
		out := fmt.Sprintf("%%%d\r\n", len(v))
		for _, pair := range v {
			out += replied(pair[0]) + replied(pair[1])
		}
		return out
	}
	return "_\r\n"
}

// repliedSearch is the reply of a search with one row and perhaps warnings.
func repliedSearch(warnings ...any) string {
	row := [][2]any{{"id", "x"}, {"extra_attributes", [][2]any{{"b", "{\r\n}"}, {"gone", nil}}}, {"values", []any{}}}
	return replied([][2]any{{"attributes", []any{}}, {"total_results", 3}, {"format", "STRING"}, {"results", []any{row}}, {"warning", warnings}})
}

func TestAnswer(t *testing.T) {
	t.Parallel()
	want := answer{total: 3, rows: []found{{key: []byte("x"), cells: []cell{{[]byte("b"), []byte("{\r\n}")}, {[]byte("gone"), nil}}}}}
	for name, reply := range map[string]string{
		"plain": repliedSearch(), "behind an attribute": "|1\r\n" + replied("ttl") + replied(3600) + repliedSearch(),
	} {
		a, err := parseAnswer([]byte(reply))
		if diff := cmp.Diff(want, a, cmp.AllowUnexported(answer{}, found{}, cell{})); diff != "" || err != nil {
			t.Errorf("%s: %v, (-want +got):\n%s", name, err, diff)
		}
	}
	if _, err := parseAnswer([]byte(repliedSearch("Timeout limit was reached"))); !errors.Is(err, errPartial) {
		t.Errorf("with a warning: %v", err)
	}
	gone := replied([][2]any{{"results", []any{[][2]any{{"id", "x"}, {"extra_attributes", nil}}}}, {"warning", nil}})
	if a, err := parseAnswer([]byte(gone)); err != nil || len(a.rows) != 1 || !a.rows[0].empty() {
		t.Errorf("a row that is gone: %+v, %v", a, err)
	}
	_, err := parseAnswer([]byte("-LOADING Redis is loading the dataset in memory\r\n"))
	if !errors.Is(explain(err), store.ErrAway) {
		t.Errorf("refused: %v", err)
	}
}

// FuzzAnswer: a reply that is torn anywhere is an error, and none makes us panic.
func FuzzAnswer(f *testing.F) {
	f.Add(repliedSearch(), 7)
	f.Add(repliedSearch("late"), 40)
	f.Add("*1000000000\r\n", 3)
	f.Add("%1\r\n|2\r\n*1\r\n", 0)
	f.Fuzz(func(t *testing.T, reply string, cut int) {
		_, _ = parseAnswer([]byte(reply))
		whole := repliedSearch()
		if cut > 0 && cut < len(whole) {
			if _, err := parseAnswer([]byte(whole[:cut])); err == nil {
				t.Errorf("%q is taken for whole", whole[:cut])
			}
		}
	})
}

// TestKeys checks that a scope has one slot with any identifiers, and that no two
// rows share a key.
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
		if got, err := (owners{}).session(fields{"okey": orderOf(s1), "x": absentLevel}); s1.Validate() == nil && (err != nil || got != s1) {
			t.Fatalf("scope %v, %v, want %v", got, err, s1)
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
		"m": func(c *Config) { c.M = -1 }, "timeout": func(c *Config) { c.QueryTimeout = -1 },
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
