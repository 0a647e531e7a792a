package audittest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"palimpsest/internal/audit"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// RunLog holds a log to its contract. open returns an empty one.
func RunLog(t *testing.T, open func(t *testing.T) audit.Log) {
	for _, test := range []struct {
		name string
		run  func(*testing.T, audit.Log)
	}{
		{"empty", logEmpty},
		{"records follow from effects", logRecords},
		{"writing twice is writing once", logIdempotent},
		{"history of a fact", logHistory},
		{"queries", logQueries},
		{"selectors widen", logWidens},
		{"hostile scopes are isolated", logIsolation},
		{"effects come back whole", logEffects},
		{"effects may be left early", logEffectsStop},
		{"heads are the newest of each scope", logHeads},
		{"effects in stream order", logBetween},
		{"effects that match a filter", logMatching},
		{"cursors", logCursors},
		{"concurrent writers", logConcurrent},
		{"closed", logClosed},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			log := open(t)
			t.Cleanup(func() { _ = log.Close() })
			test.run(t, log)
		})
	}
}

// RunLogHistory holds a log to [audit.ErrOtherHistory].
func RunLogHistory(t *testing.T, open func(t *testing.T) audit.Log) {
	s := logScope("alice")
	for name, other := range map[string]func(e *events.Event[events.EffectCommitted]){
		"another effect":                   func(e *events.Event[events.EffectCommitted]) { e.ID = "other" },
		"the same message, at a new place": func(e *events.Event[events.EffectCommitted]) { e.Sequence = 1 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			log := open(t)
			t.Cleanup(func() { _ = log.Close() })
			story, more := LogStory(s, 3, 10), LogStory(s, 4, 10)
			logWrite(t, log, story...)
			other(&more[1])
			if err := log.Write(t.Context(), more); !errors.Is(err, audit.ErrOtherHistory) {
				t.Errorf("%v, want ErrOtherHistory", err)
			}
			if last, err := log.LastSequence(t.Context()); err != nil || last != 30 {
				t.Errorf("something was written: last sequence %d, %v", last, err)
			}
			logWrite(t, log, more[0], more[2], more[3])
		})
	}
	t.Run("two effects of one revision", func(t *testing.T) {
		t.Parallel()
		log := open(t)
		t.Cleanup(func() { _ = log.Close() })
		story := LogStory(s, 2, 10)
		other := story[1]
		other.ID = "other"
		if err := log.Write(t.Context(), append(story, other)); !errors.Is(err, audit.ErrOtherHistory) {
			t.Errorf("%v, want ErrOtherHistory", err)
		}
		if last, err := log.LastSequence(t.Context()); err != nil || last != 0 {
			t.Errorf("something was written: last sequence %d, %v", last, err)
		}
	})
	t.Run("scopes of one spelling", func(t *testing.T) {
		t.Parallel()
		log := open(t)
		t.Cleanup(func() { _ = log.Close() })
		for i, s := range JournalScopes() {
			logWrite(t, log, LogStory(s, 2, uint64(i+1))...)
		}
	})
}

func logEmpty(t *testing.T, log audit.Log) {
	ctx := t.Context()
	if err := log.Ping(ctx); err != nil {
		t.Errorf("ping: %v", err)
	}
	if last, err := log.LastSequence(ctx); err != nil || last != 0 {
		t.Errorf("last sequence %d, %v", last, err)
	}
	if got := logQuery(t, log, scope.Selector{Project: "default"}, audit.Query{}); len(got) != 0 {
		t.Errorf("records %v", got)
	}
	if h, err := log.History(ctx, "default", "f"); err != nil || len(h) != 0 {
		t.Errorf("history %v, %v", h, err)
	}
	if err := log.Write(ctx, nil); err != nil {
		t.Errorf("write nothing: %v", err)
	}
}

func logRecords(t *testing.T, log audit.Log) {
	s := logScope("alice")
	story := LogStory(s, 4, 10)
	logWrite(t, log, story...)
	var want []audit.Record
	for _, e := range story {
		want = append(want, audit.Records(e)...)
	}
	logDiff(t, want, logQuery(t, log, scope.Exactly(s), audit.Query{}))
	if last, err := log.LastSequence(t.Context()); err != nil || last != 40 {
		t.Errorf("last sequence %d, %v", last, err)
	}
}

// Redelivered batches are cut differently.
func logIdempotent(t *testing.T, log audit.Log) {
	s := logScope("alice")
	story := LogStory(s, 6, 1)
	for _, cut := range [][2]int{{0, 4}, {2, 6}, {0, 6}, {5, 6}} {
		logWrite(t, log, story[cut[0]:cut[1]]...)
	}
	logWrite(t, log, story[0], story[0])
	var want []audit.Record
	for _, e := range story {
		want = append(want, audit.Records(e)...)
	}
	logDiff(t, want, logQuery(t, log, scope.Exactly(s), audit.Query{}))
}

func logHistory(t *testing.T, log audit.Log) {
	s := logScope("alice")
	story := LogStory(s, 5, 1)
	logWrite(t, log, story[3], story[4])
	logWrite(t, log, story[:3]...)
	logWrite(t, log, LogStory(scope.Scope{Project: "other", User: "alice"}, 2, 100)...)
	got, err := log.History(t.Context(), s.Project, "fact")
	if err != nil {
		t.Fatal(err)
	}
	var revisions []uint64
	for _, r := range got {
		revisions = append(revisions, r.Revision)
		if r.Scope != s || r.FactID != "fact" {
			t.Errorf("record of %s, fact %s", r.Scope, r.FactID)
		}
	}
	logDiff(t, []uint64{1, 2, 3, 4, 5}, revisions)
	if first, last := got[0], got[4]; first.Before != nil || first.After == nil || last.Before == nil || last.After.Revision != 5 {
		t.Errorf("history begins with %+v and ends with %+v", first, last)
	}
	if h, err := log.History(t.Context(), s.Project, ""); err != nil || len(h) != 0 {
		t.Errorf("history of no fact: %d records, %v", len(h), err)
	}
}

func logQueries(t *testing.T, log audit.Log) {
	s := logScope("alice")
	story := LogStory(s, 6, 1)
	logWrite(t, log, story...)
	at := func(revision int) time.Time { return story[revision-1].Data.CommittedAt }
	for name, test := range map[string]struct {
		query audit.Query
		want  []string // revision.index
	}{
		"all":         {audit.Query{}, []string{"1.0", "1.1", "2.0", "2.1", "3.0", "3.1", "4.0", "4.1", "5.0", "5.1", "6.0", "6.1"}},
		"after":       {audit.Query{AfterSequence: 4}, []string{"5.0", "5.1", "6.0", "6.1"}},
		"time":        {audit.Query{From: at(2), To: at(4)}, []string{"2.0", "2.1", "3.0", "3.1"}},
		"kind":        {audit.Query{Kinds: []events.DeltaKind{events.DeltaAdd}}, []string{"1.0"}},
		"kinds":       {audit.Query{Kinds: []events.DeltaKind{events.DeltaAdd, events.DeltaUpdate}, To: at(3)}, []string{"1.0", "2.0"}},
		"rule":        {audit.Query{Rule: "sleep"}, []string{"2.0", "2.1", "4.0", "4.1", "6.0", "6.1"}},
		"correlation": {audit.Query{CorrelationID: "request-3"}, []string{"3.0", "3.1"}},
		"limit":       {audit.Query{Limit: 3}, []string{"1.0", "1.1", "2.0"}},
		"hostile":     {audit.Query{Rule: "' OR 1=1 --"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, r := range logQuery(t, log, scope.Exactly(s), test.query) {
				got = append(got, fmt.Sprintf("%d.%d", r.Revision, r.Index))
			}
			logDiff(t, test.want, got)
		})
	}
	for _, limit := range []int{-1, 0, audit.MaxRecords + 1} {
		if _, err := log.Records(t.Context(), scope.Exactly(s), audit.Query{Limit: limit}); !errors.Is(err, audit.ErrQuery) {
			t.Errorf("limit %d: %v, want ErrQuery", limit, err)
		}
	}
}

func logWidens(t *testing.T, log audit.Log) {
	scopes := []scope.Scope{
		{Project: "p", User: "u"}, {Project: "p", User: "u", Agent: "a"}, {Project: "p", Agent: "a"}, {Project: "p", Agent: "a", Session: "s"},
	}
	for i, s := range scopes {
		logWrite(t, log, LogStory(s, 1, uint64(i+1))...)
	}
	none, user, agent := "", "u", "a"
	for name, sel := range map[string]scope.Selector{
		"all": {Project: "p"}, "user": {Project: "p", User: &user}, "user alone": {Project: "p", User: &user, Agent: &none},
		"agent": {Project: "p", Agent: &agent}, "agent alone": {Project: "p", User: &none, Agent: &agent, Session: &none},
	} {
		var want, got []scope.Scope
		for _, s := range scopes {
			if sel.Match(s) {
				want = append(want, s, s)
			}
		}
		for _, r := range logQuery(t, log, sel, audit.Query{}) {
			got = append(got, r.Scope)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func logIsolation(t *testing.T, log audit.Log) {
	scopes := JournalScopes()
	for i, s := range scopes {
		logWrite(t, log, LogStory(s, 2, uint64(i*10+1))...)
	}
	for _, s := range scopes {
		got := logQuery(t, log, scope.Exactly(s), audit.Query{})
		if len(got) != 4 {
			t.Errorf("%s has %d records, want 4", s, len(got))
		}
		for _, r := range got {
			if r.Scope != s {
				t.Errorf("%s shows a record of %s", s, r.Scope)
			}
		}
		n := 0
		for e, err := range log.Effects(t.Context(), s, 0) {
			if err != nil {
				t.Fatal(err)
			}
			if e.Scope != s {
				t.Errorf("%s shows an effect of %s", s, e.Scope)
			}
			n++
		}
		if n != 2 {
			t.Errorf("%s has %d effects, want 2", s, n)
		}
	}
}

func logEffects(t *testing.T, log audit.Log) {
	s := logScope("alice")
	story := LogStory(s, 5, 1)
	logWrite(t, log, story[2], story[4], story[0], story[3], story[1])
	var got []events.Event[events.EffectCommitted]
	for e, err := range log.Effects(t.Context(), s, 1) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, e)
	}
	if len(got) != 4 {
		t.Fatalf("%d effects behind revision 1, want 4", len(got))
	}
	for i, e := range got {
		logDiff(t, logJSON(t, story[i+1].Data), logJSON(t, e.Data))
		if e.Sequence != story[i+1].Sequence || e.ID != story[i+1].ID {
			t.Errorf("effect %d is %s at %d, want %s at %d", e.Data.Revision, e.ID, e.Sequence, story[i+1].ID, story[i+1].Sequence)
		}
	}
}

func logEffectsStop(t *testing.T, log audit.Log) {
	s := logScope("alice")
	logWrite(t, log, LogStory(s, 3, 1)...)
	for e, err := range log.Effects(t.Context(), s, 0) {
		if err != nil || e.Data.Revision != 1 {
			t.Fatalf("revision %d, %v", e.Data.Revision, err)
		}
		// The log may be written while it is read.
		logWrite(t, log, LogStory(logScope("bob"), 1, 9)...)
		break
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, err := range log.Effects(ctx, s, 0) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled read: %v", err)
		}
	}
}

func logHeads(t *testing.T, log audit.Log) {
	want := map[scope.Scope]uint64{}
	for i, s := range JournalScopes() {
		story := LogStory(s, 3, uint64(10*i+1))
		logWrite(t, log, story[2], story[0], story[1])
		want[s] = story[2].Sequence
	}
	got := map[scope.Scope]uint64{}
	take := func(h audit.Head) error {
		if _, twice := got[h.Scope]; twice {
			t.Errorf("%s has two heads", h.Scope)
		}
		got[h.Scope] = h.Sequence
		return nil
	}
	if err := log.Heads(t.Context(), take); err != nil {
		t.Fatal(err)
	}
	logDiff(t, want, got)
	enough := errors.New("enough")
	if err := log.Heads(t.Context(), func(audit.Head) error { return enough }); !errors.Is(err, enough) {
		t.Errorf("heads left early: %v", err)
	}
}

func logConcurrent(t *testing.T, log audit.Log) {
	story := LogStory(logScope("alice"), 20, 1)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i := range story {
				if err := log.Write(t.Context(), story[i:min(i+3, len(story))]); err != nil {
					t.Error(err)
				}
				if _, err := log.History(t.Context(), "default", "fact"); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if got := logQuery(t, log, scope.Selector{Project: "default"}, audit.Query{}); len(got) != 40 {
		t.Errorf("%d records, want 40", len(got))
	}
}

func logClosed(t *testing.T, log audit.Log) {
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	_, last := log.LastSequence(ctx)
	_, history := log.History(ctx, "default", "f")
	for name, err := range map[string]error{
		"write": log.Write(ctx, nil), "ping": log.Ping(ctx), "last": last, "history": history, "close": log.Close(),
	} {
		if !errors.Is(err, audit.ErrClosed) {
			t.Errorf("%s: %v, want ErrClosed", name, err)
		}
	}
}
