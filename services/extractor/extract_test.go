package extractor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"palimpsest/internal/extract"
	"palimpsest/internal/filter"
	"palimpsest/internal/llm"
	"palimpsest/internal/memory"
	"palimpsest/internal/pipeline"
	"palimpsest/internal/rules"
	"palimpsest/internal/store"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

var (
	noon  = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	alice = scope.Scope{Project: "p", User: "alice"}
)

// fakeReader holds the episodes of one fact scope, by ordinal.
type fakeReader struct {
	store.EpisodeReader
	episodes []memory.Episode
	err      error
}

func (f *fakeReader) EpisodeRange(_ context.Context, _ scope.Scope, r events.Range) (out []memory.Episode, err error) {
	for _, e := range f.episodes {
		if e.Ordinal > r.From && e.Ordinal <= r.To {
			out = append(out, e)
		}
	}
	return out, f.err
}

func (f *fakeReader) EpisodesBefore(_ context.Context, s scope.Scope, ordinal uint64, n int) (out []memory.Episode, err error) {
	for _, e := range f.episodes {
		if e.Scope == s && e.Ordinal < ordinal {
			out = append(out, e)
		}
	}
	return out[max(0, len(out)-n):], f.err
}

// fakeExtractor proposes the content of each episode and remembers its calls.
type fakeExtractor struct {
	calls [][2][]string // ids of the turns before, ids of the episodes
	in    []extract.Context
	err   error
}

func (*fakeExtractor) Name() string { return "fake@1" }

func (f *fakeExtractor) Extract(_ context.Context, episodes []memory.Episode, in extract.Context) (out []events.Candidate, err error) {
	f.calls = append(f.calls, [2][]string{ids(in.Before), ids(episodes)})
	f.in = append(f.in, in)
	for _, e := range episodes {
		out = append(out, events.Candidate{ID: "c-" + e.ID, Text: e.Content})
	}
	return out, f.err
}

func ids(es []memory.Episode) (out []string) {
	for _, e := range es {
		out = append(out, e.ID)
	}
	return out
}

func said(id string, ordinal uint64, session, content string) memory.Episode {
	s := alice
	s.Session = session
	return memory.Episode{
		ID: id, Ordinal: ordinal, Scope: s, Role: events.RoleUser, Content: content, Timestamp: noon, CorrelationID: "cor-" + id,
	}
}

func tick(rule string, from, to uint64) events.Event[events.TickIssued] {
	return events.Event[events.TickIssued]{Data: events.TickIssued{Batch: events.Batch{
		Header: events.Header{Scope: alice}, Rule: rule, Range: events.Range{From: from, To: to}, Cause: events.CauseEvery,
	}}}
}

func newService(t *testing.T, r *fakeReader, x *fakeExtractor, when filter.Expr) *Service {
	t.Helper()
	list := rules.Shipped()
	list[0].When = when
	s, err := New(Config{Rules: list}, Deps{Episodes: r, Extractors: map[string]extract.Extractor{"rulepack": x}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func where(t *testing.T, text string) filter.Expr {
	t.Helper()
	e, err := filter.ParseWhere(text, filter.Episodes)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func run1(t *testing.T, s *Service, in events.Event[events.TickIssued]) events.CandidatesExtracted {
	t.Helper()
	out, err := s.extract(context.Background(), in)
	if err != nil {
		t.Fatal(err)
	}
	if len(out) != 1 {
		t.Fatalf("got %d payloads, want 1", len(out))
	}
	return out[0].(events.CandidatesExtracted)
}

func TestExtractsTheRangeWithItsContext(t *testing.T) {
	t.Parallel()
	r := &fakeReader{}
	for i, session := range []string{"a", "a", "a", "a", "a", "b", "a", "b"} {
		r.episodes = append(r.episodes, said(string(rune('1'+i)), uint64(i+1), session, "text"))
	}
	x := &fakeExtractor{}
	in := tick("turn", 6, 8)
	in.Data.Prompt = "look for birds"
	in.Data.SessionEnds = []events.SessionEnd{{Session: "a", LastOrdinal: 7, Cause: events.EndIdle, At: noon}}
	got := run1(t, newService(t, r, x, nil), in)
	if diff := cmp.Diff([][2][]string{{{"2", "3", "4", "5", "6"}, {"7", "8"}}}, x.calls); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	batch := in.Data.Batch
	batch.Extractor = "fake@1"
	want := events.CandidatesExtracted{
		Batch: batch, SessionEnds: in.Data.SessionEnds,
		Episodes: []events.EpisodeRef{
			{ID: "7", Ordinal: 7, Session: "a", CorrelationID: "cor-7"},
			{ID: "8", Ordinal: 8, Session: "b", CorrelationID: "cor-8"},
		},
		Candidates: []events.Candidate{{ID: "c-7", Text: "text"}, {ID: "c-8", Text: "text"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("batch (-want +got):\n%s", diff)
	}
	if x.in[0].Prompt != "look for birds" || x.in[0].Rule != "turn" || x.in[0].Scope != alice {
		t.Errorf("context is %+v", x.in[0])
	}
}

func TestSkippedTickPassesThrough(t *testing.T) {
	t.Parallel()
	x := &fakeExtractor{}
	in := tick("turn", 0, 3)
	in.Data.Skipped = "poison"
	got := run1(t, newService(t, &fakeReader{err: errors.New("must not be read")}, x, nil), in)
	if got.Skipped != "poison" || len(got.Candidates) > 0 || len(x.calls) > 0 {
		t.Errorf("got %+v after %d calls", got, len(x.calls))
	}
}

func TestEmptyRangeGivesAnEmptyBatch(t *testing.T) {
	t.Parallel()
	got := run1(t, newService(t, &fakeReader{}, &fakeExtractor{}, nil), tick("turn", 0, 3))
	if len(got.Candidates) > 0 || got.Range != (events.Range{To: 3}) {
		t.Errorf("got %+v", got)
	}
}

func TestWhatARuleDoesNotReadIsContextStill(t *testing.T) {
	t.Parallel()
	r := &fakeReader{episodes: []memory.Episode{said("1", 1, "a", "x"), said("2", 2, "a", "skip"), said("3", 3, "a", "x")}}
	r.episodes[0].Mode = events.ModeIncognito
	x := &fakeExtractor{}
	got := run1(t, newService(t, r, x, where(t, "content <> 'skip'")), tick("turn", 0, 3))
	if diff := cmp.Diff([][2][]string{{{"2"}, {"3"}}}, x.calls); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	if len(got.Episodes) != 3 {
		t.Errorf("got %d refs, want 3", len(got.Episodes))
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	s := newService(t, &fakeReader{}, &fakeExtractor{}, nil)
	if _, err := s.extract(context.Background(), tick("unheard-of", 0, 1)); !pipeline.IsRefused(err) {
		t.Errorf("an unknown rule: %v, want a reject", err)
	}
	s = newService(t, &fakeReader{err: store.ErrClosed}, &fakeExtractor{}, nil)
	if _, err := s.extract(context.Background(), tick("turn", 0, 1)); !errors.Is(err, store.ErrClosed) || pipeline.IsRefused(err) {
		t.Errorf("a store that is down: %v, want a retry", err)
	}
}

// TestPausedModelPostpones: an outage is no failure of the tick.
func TestPausedModelPostpones(t *testing.T) {
	t.Parallel()
	r := &fakeReader{episodes: []memory.Episode{said("1", 1, "a", "text")}}
	x := &fakeExtractor{err: fmt.Errorf("ask: %w", &llm.PausedError{After: 3 * time.Second, Err: llm.ErrUnavailable})}
	_, err := newService(t, r, x, nil).extract(context.Background(), tick("turn", 0, 1))
	if after, ok := pipeline.Postponed(err); !ok || after != 3*time.Second {
		t.Errorf("error %v", err)
	}
}

// TestUnreadableReplyIsKeptAndFallsBack: the range goes on with the candidates of the
// fallback, and a letter keeps the reply.
func TestUnreadableReplyIsKeptAndFallsBack(t *testing.T) {
	t.Parallel()
	for _, reply := range []string{"I found nothing, sorry", ""} {
		r := &fakeReader{episodes: []memory.Episode{said("1", 1, "a", "text")}}
		x := &fakeExtractor{err: &extract.UnusableError{Reply: reply, Err: llm.ErrMalformed}}
		s, err := New(Config{}, Deps{Episodes: r, Extractors: map[string]extract.Extractor{"rulepack": x}, Fallback: &fakeExtractor{}})
		if err != nil {
			t.Fatal(err)
		}
		out, err := s.extract(context.Background(), tick("turn", 0, 1))
		if err != nil {
			t.Fatal(err)
		}
		if got := out[0].(events.CandidatesExtracted); len(got.Candidates) != 1 || got.Candidates[0].ID != "c-1" {
			t.Errorf("candidates %+v", got.Candidates)
		}
		if reply == "" {
			if len(out) != 1 {
				t.Errorf("%d payloads without a reply", len(out))
			}
			continue
		}
		letter, ok := out[1].(events.MessageBuried)
		if !ok || letter.Validate() != nil || letter.Code != events.CodeMalformed || !strings.Contains(string(letter.Data), reply) {
			t.Errorf("letter %+v", out[1])
		}
		var again events.TickIssued
		if err := json.Unmarshal(letter.Data, &again); err != nil || again.Validate() != nil || again.Range.To != 1 {
			t.Errorf("the letter holds no tick: %+v, %v", again, err)
		}
	}
}

// fakeFacts holds facts of one session.
type fakeFacts struct {
	store.FactReader
	facts []store.Fact
}

func (f fakeFacts) Facts(_ context.Context, _ scope.Selector, q store.FactQuery) ([]store.Fact, error) {
	if q.Session == nil || *q.Session != "a" {
		return nil, nil
	}
	return f.facts, nil
}

func TestKnownFactsOfTheSessions(t *testing.T) {
	t.Parallel()
	r := &fakeReader{episodes: []memory.Episode{said("1", 1, "a", "text"), said("2", 2, "b", "text"), said("3", 3, "a", "text")}}
	x := &fakeExtractor{}
	facts := fakeFacts{facts: []store.Fact{{Fact: events.Fact{ID: "f1"}}, {Fact: events.Fact{ID: "f2", ValidUntil: &noon}}}}
	s, err := New(Config{}, Deps{Episodes: r, Facts: facts, Extractors: map[string]extract.Extractor{"rulepack": x}})
	if err != nil {
		t.Fatal(err)
	}
	run1(t, s, tick("turn", 0, 3))
	known, err := x.in[0].Known(context.Background())
	if err != nil || len(known) != 1 || known[0].ID != "f1" {
		t.Errorf("known %+v, %v", known, err)
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	x := map[string]extract.Extractor{"rulepack": &fakeExtractor{}}
	for name, c := range map[string]struct {
		cfg  Config
		deps Deps
	}{
		"no reader":         {deps: Deps{Extractors: x}},
		"unknown extractor": {cfg: Config{Extractor: "model"}, deps: Deps{Episodes: &fakeReader{}, Extractors: x}},
		"a rule twice":      {cfg: Config{Rules: []memory.Rule{{ID: "a"}, {ID: "a"}}}, deps: Deps{Episodes: &fakeReader{}, Extractors: x}},
		"a rule without id": {cfg: Config{Rules: []memory.Rule{{}}}, deps: Deps{Episodes: &fakeReader{}, Extractors: x}},
	} {
		if _, err := New(c.cfg, c.deps); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestStage(t *testing.T) {
	t.Parallel()
	s := newService(t, &fakeReader{}, &fakeExtractor{}, nil)
	if s.Name() != "extractor" || len(s.Stages()) != 3 {
		t.Errorf("%s has %d stages", s.Name(), len(s.Stages()))
	}
}

// An episode that asks for a tick of its own is read by the rule of requests alone,
// with the prompt of the tick; where a tick of the answering rule has one all the
// same, it is not lost.
func TestRequestsAreReadOnce(t *testing.T) {
	t.Parallel()
	r := &fakeReader{episodes: []memory.Episode{said("1", 1, "a", "x"), said("2", 2, "a", "y"), said("3", 3, "a", "z")}}
	r.episodes[1].Request, r.episodes[1].Prompt = true, "birds"
	x := &fakeExtractor{}
	s := newService(t, r, x, nil)
	read := func(in events.Event[events.TickIssued]) (ids []string) {
		t.Helper()
		for _, c := range run1(t, s, in).Candidates {
			ids = append(ids, c.ID)
		}
		return ids
	}
	if diff := cmp.Diff([]string{"c-1", "c-3"}, read(tick("sleep", 0, 3))); diff != "" {
		t.Errorf("sleep:\n%s", diff)
	}
	add := tick("turn", 1, 2)
	add.Data.As, add.Data.Prompt, add.Data.Cause = "add", "birds", events.CauseRequest
	if diff := cmp.Diff([]string{"c-2"}, read(add)); diff != "" {
		t.Errorf("add:\n%s", diff)
	}
	if last := x.in[len(x.in)-1]; last.Rule != "add" || last.Prompt != "birds" {
		t.Errorf("the extractor is told %+v", last)
	}
	if diff := cmp.Diff([]string{"c-1", "c-2", "c-3"}, read(tick("turn", 0, 3))); diff != "" {
		t.Errorf("turn:\n%s", diff)
	}
}
