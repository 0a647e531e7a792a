package retrieval_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"palimpsest/internal/embed"
	"palimpsest/internal/embed/local"
	"palimpsest/internal/memory"
	"palimpsest/internal/retrieval"
	"palimpsest/internal/store"
	"palimpsest/internal/store/sqlite"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// wednesday is when the questions are asked.
var wednesday = time.Date(2024, 5, 15, 14, 30, 0, 0, time.UTC)

// conversations are three sessions of ana's, told in another order than they
// happened, and one of ben's.
var conversations = []struct{ user, session, at, text string }{
	{"ana", "c", "2024-05-14T09:00", "The bakery opens on Monday."},
	{"ana", "c", "2024-05-14T09:01", "Congratulations!"},
	{"ana", "a", "2024-04-02T18:00", "I adopted a parrot."},
	{"ana", "a", "2024-04-02T18:01", "What is its name?"},
	{"ana", "a", "2024-04-02T18:02", "Pixel."},
	{"ana", "b", "2024-05-08T07:30", "My parrot speaks."},
	{"ana", "b", "2024-05-08T07:31", "Really?"},
	{"ben", "d", "2024-05-14T10:00", "I sold my car."},
}

func told(t *testing.T) (*sqlite.Store, *retrieval.Engine) {
	t.Helper()
	s, err := sqlite.Open(t.Context(), sqlite.Config{Path: filepath.Join(t.TempDir(), "memory.db"), Embedder: local.New().Info()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	for i, c := range conversations {
		at, err := time.Parse("2006-01-02T15:04", c.at)
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.PutEpisode(t.Context(), memory.Episode{
			ID: fmt.Sprint(c.session, i), Scope: scope.Scope{Project: "p", User: c.user, Session: c.session},
			Role: events.RoleUser, Content: c.text, Timestamp: at, ArrivedAt: wednesday, Mode: events.ModePersistent,
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	e, err := retrieval.New(retrieval.DefaultConfig(), s, embed.Only(local.New()))
	if err != nil {
		t.Fatal(err)
	}
	return s, e
}

func asked(text string) retrieval.Query {
	user := "ana"
	return retrieval.Query{Scope: scope.Selector{Project: "p", User: &user}, Text: text, Facts: true, Episodes: true, Now: wednesday}
}

func said(hits []retrieval.Hit) string {
	var out []string
	for _, h := range hits {
		out = append(out, h.Episode.ID)
	}
	return strings.Join(out, " ")
}

func TestQuestionsOfATime(t *testing.T) {
	t.Parallel()
	_, e := told(t)
	for text, want := range map[string]string{
		"What did we discuss yesterday?":                 "c0 c1",
		"What did we talk about in April?":               "a2 a3 a4",
		"what did I say last week":                       "b5 b6",
		"What did we discuss since May?":                 "b5 b6 c0 c1",
		"What did we discuss between April 1 and May 8?": "a2 a3 a4 b5 b6",
		"What did we discuss in our first session?":      "a2 a3 a4",
		"What did we cover two sessions ago?":            "b5 b6",
		"What did we discuss in the last two sessions?":  "b5 b6 c0 c1",
		"What did we discuss 8 days ago?":                "b5 b6", // seven, in truth
		"О чём мы говорили вчера?":                       "c0 c1",
		"О чём мы говорили в первой сессии?":             "a2 a3 a4",
	} {
		out, err := e.Search(t.Context(), asked(text))
		if err != nil || said(out.Hits) != want || out.Next != nil {
			t.Errorf("%q: %q, %v, next %v; want %q", text, said(out.Hits), err, out.Next, want)
		}
		for _, h := range out.Hits {
			if h.Score != 1 || h.Channels["time"].Rank == 0 {
				t.Errorf("%q: %+v", text, h)
			}
		}
	}
}

func TestPagesOfATime(t *testing.T) {
	t.Parallel()
	_, e := told(t)
	for _, text := range []string{"What did we discuss this year?", "What did we discuss in the last three sessions?"} {
		for _, limit := range []int{1, 2, 3, 6} {
			var pages []retrieval.Hit
			q := asked(text)
			for q.Limit = limit; ; {
				out, err := e.Search(t.Context(), q)
				if err != nil || len(out.Hits) > limit || len(pages) > 7 {
					t.Fatalf("%d hits, %v", len(out.Hits), err)
				}
				pages = append(pages, out.Hits...)
				if q.Page = out.Next; q.Page == nil {
					break
				}
				q.Now = wednesday.AddDate(1, 0, 0) // the first page's counts
			}
			if got := said(pages); got != "a2 a3 a4 b5 b6 c0 c1" {
				t.Errorf("%q by %d: %s", text, limit, got)
			}
		}
	}
	q := asked("What did we discuss yesterday?")
	q.Page = &retrieval.Page{Now: wednesday, Session: -4, Cursor: store.EpisodeCursor{Timestamp: wednesday}}
	if out, err := e.Search(t.Context(), q); err != nil || len(out.Hits) > 0 {
		t.Errorf("behind the end: %+v, %v", out, err)
	}
	q = asked("parrot")
	q.Page = &retrieval.Page{Now: wednesday}
	if out, err := e.Search(t.Context(), q); err != nil || len(out.Hits) > 0 {
		t.Errorf("a page of what has none: %+v, %v", out, err)
	}
}

// A question with content prefers the time that it names, and loses nothing else.
func TestContentInATime(t *testing.T) {
	t.Parallel()
	_, e := told(t)
	for text, first := range map[string]string{
		"What did I say about the parrot in April?":            "a2",
		"What did I say about my parrot on May 8th?":           "b5",
		"What did I say about the parrot in our first session": "a2",
		"Что я говорил про parrot в апреле?":                   "a2",
	} {
		out, err := e.Search(t.Context(), asked(text))
		if err != nil || len(out.Hits) == 0 || out.Hits[0].Episode.ID != first {
			t.Fatalf("%q: %q, %v; want %s first", text, said(out.Hits), err, first)
		}
		if !slices.Contains(strings.Fields(said(out.Hits)), "b5") {
			t.Errorf("%q: %q lacks the other parrot", text, said(out.Hits))
		}
	}
	out, err := e.Search(t.Context(), asked("What did I say about the parrot in 2019?"))
	if err != nil || !strings.Contains(said(out.Hits), "a2") {
		t.Errorf("a time without episodes: %q, %v", said(out.Hits), err)
	}
}

// A time of which nothing is known leaves the question to the other channels, and so
// does a question without an instant to count from.
func TestTimesLeftUnread(t *testing.T) {
	t.Parallel()
	_, e := told(t)
	q := asked("What did I say about the bakery?")
	want, err := e.Search(t.Context(), q)
	if err != nil || len(want.Hits) == 0 {
		t.Fatal(err)
	}
	for _, change := range []func(*retrieval.Query){
		func(q *retrieval.Query) { q.Now = time.Time{} },
		func(q *retrieval.Query) { q.Text = "What did we discuss in 2019, the bakery" },
	} {
		q := q
		change(&q)
		if got, err := e.Search(t.Context(), q); err != nil || got.Hits[0].Episode.ID != want.Hits[0].Episode.ID {
			t.Errorf("%q, %v", said(got.Hits), err)
		}
	}
}

// TestTimeWithinBounds checks that the bounds of a request also limit the time that
// its text names.
func TestTimeWithinBounds(t *testing.T) {
	t.Parallel()
	_, e := told(t)
	q := asked("What did we discuss this year?")
	q.After, q.Before = time.Date(2024, 4, 2, 18, 0, 0, 0, time.UTC), time.Date(2024, 5, 14, 0, 0, 0, 0, time.UTC)
	out, err := e.Search(t.Context(), q)
	if diff := cmp.Diff("a3 a4 b5 b6", said(out.Hits)); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

var errDown = errors.New("down")

// brokenTimeline answers searches alone.
type brokenTimeline struct{ *sqlite.Store }

func (brokenTimeline) Recent(context.Context, scope.Selector, store.RecentQuery) ([]memory.Episode, error) {
	return nil, errDown
}

func TestTimelineDown(t *testing.T) {
	t.Parallel()
	s, _ := told(t)
	e, err := retrieval.New(retrieval.DefaultConfig(), brokenTimeline{s}, embed.Only(local.New()))
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"What did we discuss yesterday?", "What did I say about the bakery yesterday?"} {
		out, err := e.Search(t.Context(), asked(text))
		if err != nil || !slices.Equal(out.Degraded, []string{"time"}) {
			t.Errorf("%q: degraded %v, %v", text, out.Degraded, err)
		}
	}
	q := asked("What did we discuss yesterday?")
	q.Page = &retrieval.Page{Now: wednesday}
	if _, err := e.Search(t.Context(), q); !errors.Is(err, retrieval.ErrUnavailable) || !errors.Is(err, errDown) {
		t.Errorf("a page: %v", err)
	}
}
