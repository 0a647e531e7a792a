package timex_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"palimpsest/internal/retrieval/timex"
)

// reading is a question and the expected result: time is the window, or the
// sessions by number, and only means that nothing else is asked.
type reading struct {
	question, time string
	only           bool
}

var wednesday = time.Date(2024, 5, 15, 14, 30, 0, 0, time.UTC)

func TestRead(t *testing.T) {
	t.Parallel()
	for _, tc := range slices.Concat(english, russian) {
		r := timex.Read(tc.question, wednesday)
		if got := written(r); got != tc.time || r.Only != tc.only {
			t.Errorf("%q: %q, only %t; want %q, only %t", tc.question, got, r.Only, tc.time, tc.only)
		}
	}
}

// written is "from..to" or "#first-last" with "last " before it where it counts
// from the newest.
func written(r timex.Reading) string {
	var out string
	if r.Dated() {
		out = instant(r.From) + ".." + instant(r.To)
	}
	if r.Sessions.FromEnd {
		out += "last "
	}
	if r.Sessions.First > 0 {
		out += fmt.Sprintf("#%d-%d", r.Sessions.First, r.Sessions.Last)
	}
	return out
}

func instant(t time.Time) string {
	switch {
	case t.IsZero():
		return ""
	case t.Equal(t.Truncate(24 * time.Hour)):
		return t.Format(time.DateOnly)
	}
	return t.Format("2006-01-02T15:04")
}

func TestReadInZone(t *testing.T) {
	t.Parallel()
	tokyo := time.FixedZone("", 9*3600)
	now := time.Date(2024, 5, 15, 23, 30, 0, 0, time.UTC) // the 16th in Tokyo
	r := timex.Read("What did I say yesterday?", now.In(tokyo))
	if want := time.Date(2024, 5, 15, 0, 0, 0, 0, tokyo); !r.From.Equal(want) || !r.To.Equal(want.AddDate(0, 0, 1)) {
		t.Errorf("%v to %v", r.From, r.To)
	}
}

func TestHolds(t *testing.T) {
	t.Parallel()
	r := timex.Read("on May 8th", wednesday)
	from := time.Date(2024, 5, 8, 0, 0, 0, 0, time.UTC)
	if !r.Holds(from) || r.Holds(from.Add(-time.Nanosecond)) || r.Holds(from.AddDate(0, 0, 1)) {
		t.Error("the window is [from, to)")
	}
	if r := timex.Read("since May 8th", wednesday); !r.Holds(from.AddDate(9, 0, 0)) || r.Holds(from.Add(-1)) {
		t.Error("an open end holds all")
	}
}

func TestStart(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"last_week": "2024-05-06", "last_month": "2024-04-01", "yesterday": "2024-05-14", "2024-W19": "2024-05-06", "last friday": "2024-05-10",
		"": "", "soon": "", "before_2024": "", "last_week or so": "", "last_session": "",
	} {
		from, ok := timex.Start(name, wednesday)
		if ok != (want != "") || ok && instant(from) != want {
			t.Errorf("%q: %v, %t; want %q", name, from, ok, want)
		}
	}
}

func TestSpans(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		text, rest string
		spans      []string
	}{
		{"What did Ann cook last Sunday?", "What did Ann cook ?", []string{"last Sunday"}},
		{"On May 8th, 2024, what did Ann cook?", ", what did Ann cook?", []string{"On May 8th, 2024"}},
		{"Что Аня готовила 8 мая?", "Что Аня готовила ?", []string{"8 мая"}},
		{"In session 3 and yesterday: cats", ": cats", nil},
		{"no time at all", "no time at all", []string{}},
	} {
		r := timex.Read(tc.text, wednesday)
		var got []string
		for _, s := range r.Spans {
			got = append(got, tc.text[s.Start:s.End])
		}
		if tc.spans != nil && !slices.Equal(got, tc.spans) {
			t.Errorf("%q: %q, want %q", tc.text, got, tc.spans)
		}
		if tc.spans != nil && r.Rest != tc.rest {
			t.Errorf("%q leaves %q, want %q", tc.text, r.Rest, tc.rest)
		}
	}
}

// Slack is for dates that people give roughly.
func TestSlack(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"38 days ago": 24 * time.Hour, "three weeks ago": 7 * 24 * time.Hour, "this morning": 2 * time.Hour,
		"on May 8th": 0, "in May": 0, "two sessions ago": 0,
	} {
		if got := timex.Read(text, wednesday).Slack; got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}

func FuzzRead(f *testing.F) {
	for _, tc := range slices.Concat(english, russian) {
		f.Add(tc.question, wednesday.Unix())
	}
	f.Add("99999999999 years ago \xff 9999 лет назад", int64(-1))
	f.Fuzz(func(t *testing.T, text string, at int64) {
		now := time.Unix(at%(4e10), 0).UTC()
		r := timex.Read(text, now)
		if r.Dated() && !r.From.IsZero() && !r.To.IsZero() && !r.From.Before(r.To) {
			t.Fatalf("%v to %v", r.From, r.To)
		}
		if s := r.Sessions; s.First < 0 || s.Last < s.First || r.Only && !r.Found() || r.Slack < 0 {
			t.Fatalf("%+v", r)
		}
		end := 0
		for _, s := range r.Spans {
			if s.Start < end || s.End <= s.Start || s.End > len(text) {
				t.Fatalf("spans %v of %d bytes", r.Spans, len(text))
			}
			if utf8.ValidString(text) && !utf8.ValidString(text[s.Start:s.End]) {
				t.Fatalf("a span cuts a character: %q", text[s.Start:s.End])
			}
			end = s.End
		}
		if len(r.Spans) == 0 && r.Rest != text || len(strings.TrimSpace(r.Rest)) > len(text) {
			t.Fatalf("rest %q of %q", r.Rest, text)
		}
	})
}

func BenchmarkRead(b *testing.B) {
	for b.Loop() {
		timex.Read("What did Ann say about the garden between May 8th and June 9th?", wednesday)
	}
}
