package lex

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestWords(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, text string
		want       []string
	}{
		{"empty", "", nil},
		{"punctuation only", "?! … 🙂", nil},
		{"case", "Hello, Nora HERE.", []string{"hello", "nora", "here"}},
		{"contractions", "Don’t, don't", []string{"don't", "don't"}},
		{"numbers", "3.14 and 10,000", []string{"3.14", "and", "10,000"}},
		{"identifiers", "node-41 bo@example.com", []string{"node", "41", "bo", "example.com"}},
		{"accents", "Zoë in Malmö", []string{"zoë", "in", "malmö"}},
		{"compatibility forms", "ﬁle №５", []string{"file", "no5"}},
		{"sharp s folds", "Straße", []string{"strasse"}},
		{"russian", "Меня зовут Артём", []string{"меня", "зовут", "артем"}},
		{"chinese", "我住在Oslo", []string{"我", "住", "在", "oslo"}},
		{"katakana", "カタカナ", []string{"カ", "タ", "カ", "ナ"}},
		{"invalid bytes", "a\xffb", []string{"a", "b"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, Words(tt.text), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("Words(%q) (-want +got):\n%s", tt.text, diff)
			}
		})
	}
}

func TestTerms(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, text string
		want       []string
	}{
		{"stop words only", "what is it that you do", nil},
		{"stems", "hiking hikes hiked", []string{"hike", "hike", "hike"}},
		{"identifier", "on node-41 now", []string{"node", "41", "node41"}},
		{"date", "2024-05-01", []string{"2024", "05", "01", "20240501"}},
		{"mail", "bo@example.com", []string{"bo", "exampl", "com", "boexamplecom"}},
		{"grouped number", "10,000", []string{"10", "000", "10000"}},
		{"hyphen", "e-mail", []string{"e", "mail", "email"}},
		{"possessive", "Nora's dog", []string{"nora", "dog"}},
		{"name that is a stop word", "Will", []string{"will"}},
		{"diacritics", "Malmö", []string{"malmo"}},
		{"russian", "живёт в Москве", []string{"живет", "москв"}},
		{"chinese", "住北京", []string{"住", "北", "住北", "京", "北京"}},
		{"chinese broken by a comma", "北,京", []string{"北", "京"}},
		{"query syntax", `"a" OR (title:x*) @y`, []string{"titl", "x", "titlex", "y"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, Terms(tt.text), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("Terms(%q) (-want +got):\n%s", tt.text, diff)
			}
		})
	}
}

func TestMarksDiffer(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, a, b string
		want       bool
	}{
		{"same", "The user likes Python.", "the user likes Python", false},
		{"number", "The user's phone ends in 41.", "The user's phone ends in 42.", true},
		{"numeral in words", "The user has two dogs.", "The user has 2 dogs.", false},
		{"other numeral", "The user has two dogs.", "The user has three dogs.", true},
		{"grouping", "It costs 10,000.", "It costs 10000.", false},
		{"weekday", "The user runs on Monday.", "The user runs on Mon.", false},
		{"other weekday", "The user runs on Monday.", "The user runs on Friday.", true},
		{"month", "The trip is in March.", "The trip is in May.", true},
		{"name", "The user's brother is Tom.", "The user's brother is Tim.", true},
		{"possessive name", "The user is Tom's brother.", "The user is the brother of Tom.", false},
		{"negation", "The user eats meat.", "The user never eats meat.", true},
		{"contraction", "The user eats meat.", "The user doesn’t eat meat.", true},
		{"aversion", "The user likes olives.", "The user dislikes olives.", true},
		{"russian negation", "Пользователь ест мясо.", "Пользователь не ест мясо.", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			a, b := MarksOf(tt.a), MarksOf(tt.b)
			if got := a.Differ(b); got != tt.want {
				t.Errorf("Differ = %v, want %v\na: %+v\nb: %+v", got, tt.want, a, b)
			}
		})
	}
}

func TestJaccard(t *testing.T) {
	t.Parallel()
	tests := []struct {
		a, b string
		want float64
	}{
		{"", "", 0},
		{"a", "", 0},
		{"The user likes Python", "the USER likes python!", 1},
		{"a b c", "b c d", 0.5},
		{"a a b", "a b b", 1},
	}
	for _, tt := range tests {
		if got := Jaccard(NewSet(tt.a), NewSet(tt.b)); got != tt.want {
			t.Errorf("Jaccard(%q, %q) = %g, want %g", tt.a, tt.b, got, tt.want)
		}
	}
	if s := NewSet("senior engineer at Fenwick"); !s.Contains(NewSet("Fenwick engineer")) || !s.Has("senior") || s.Has("tech") {
		t.Errorf("membership in %v", s)
	}
}

// FuzzSplit holds the fast path for ASCII to the rules of UAX #29.
func FuzzSplit(f *testing.F) {
	for _, seed := range []string{"don't stop", "a.b.c 1.2,3;4", "x_y 1_2 _", "'quoted' a:b 12:30", "a.1 1.a a-b", "node-41"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if !isASCII(s) {
			return
		}
		var fast, slow []word
		splitASCII(s, func(w word) bool { fast = append(fast, w); return true })
		splitUnicode(s, func(w word) bool { slow = append(slow, w); return true })
		if diff := cmp.Diff(slow, fast, cmp.AllowUnexported(word{}), cmpopts.IgnoreFields(word{}, "script")); diff != "" {
			t.Errorf("%q (-uax29 +fast):\n%s", s, diff)
		}
	})
}

// FuzzTerms: terms are stable and cannot act as syntax.
func FuzzTerms(f *testing.F) {
	for _, seed := range []string{"Hello, Nora's node-41!", "我住在Oslo", "Ёлка 10,000.5", "İstanbul ßß", "a\xff'\"*(", "กขค ไทย", "e\u0301 \u0301x"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		terms := Terms(s)
		if diff := cmp.Diff(terms, Terms(s)); diff != "" {
			t.Errorf("Terms(%q) differs from itself:\n%s", s, diff)
		}
		for _, term := range terms {
			if term == "" || len(term) > maxTerm || !utf8.ValidString(term) || !isPlain(term) {
				t.Errorf("Terms(%q) holds %q", s, term)
			}
		}
		folded := Fold(s)
		if again := Fold(folded); again != folded {
			t.Errorf("Fold(%q) = %q, folded again %q", s, folded, again)
		}
		if diff := cmp.Diff(Words(s), Words(folded)); diff != "" {
			t.Errorf("Words of %q and of its fold differ:\n%s", s, diff)
		}
		if a := NewSet(s); len(a) > 0 && Jaccard(a, a) != 1 {
			t.Errorf("Jaccard(%q, itself) != 1", s)
		}
		MarksOf(s)
	})
}

func BenchmarkTerms(b *testing.B) {
	for name, text := range map[string]string{
		"ascii":   "The user works at Fenwick Labs as a senior hydrologist since 2019.",
		"russian": "Пользователь живёт в Санкт-Петербурге и любит горы.",
		"chinese": "我住在北京,喜欢喝茶。",
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			var dst []string
			for b.Loop() {
				dst = AppendTerms(dst[:0], text)
			}
		})
	}
}

func BenchmarkWords(b *testing.B) {
	text := strings.ToLower("The user works at Fenwick Labs as a senior hydrologist since 2019.")
	b.ReportAllocs()
	for b.Loop() {
		Words(text)
	}
}

func TestStemsAreThoseOfTheStemmer(t *testing.T) {
	t.Parallel()
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for i := range 3 * len(stems.places) { // words share places
				w := fmt.Sprintf("wandering%dly", i)
				for _, s := range []script{latin, cyrillic, latin} {
					if got, want := stemOf(w, s), stem(w, s); got != want {
						t.Errorf("stemOf(%q, %d) = %q, want %q", w, s, got, want)
					}
				}
			}
		})
	}
	group.Wait()
}
