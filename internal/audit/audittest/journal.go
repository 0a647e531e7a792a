package audittest

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"palimpsest/internal/audit"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// RunJournal checks the contract of [audit.Journal]. Every call of open must
// return a journal that is empty and independent of the others.
func RunJournal(t *testing.T, open func(t *testing.T) audit.Journal) {
	t.Helper()
	for _, tc := range []struct {
		name string
		run  func(t *testing.T, j audit.Journal)
	}{
		{"Empty", journalEmpty},
		{"AppendAndRead", journalAppendAndRead},
		{"ReadBehind", journalReadBehind},
		{"ReadLong", journalReadLong},
		{"ReadStops", journalReadStops},
		{"ReadOnlyWhatWasCommitted", journalReadCommitted},
		{"Conflict", journalConflict},
		{"AppendTwice", journalAppendTwice},
		{"ConcurrentAppenders", journalConcurrent},
		{"IsolatesScopes", journalIsolation},
		{"Widens", journalWidens},
		{"RefusesInvalid", journalRefuses},
		{"HonoursContext", journalContext},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			tc.run(t, open(t))
		})
	}
}

func journalEmpty(t *testing.T, j audit.Journal) {
	ctx := journalDeadline(t)
	if last, err := j.Last(ctx); err != nil || last != 0 {
		t.Errorf("Last = %d, %v; want 0", last, err)
	}
	for _, s := range JournalScopes() {
		if got := journalCollect(t, j.ReadScope(ctx, s, 0)); len(got) != 0 {
			t.Errorf("%s: %d effects", s, len(got))
		}
	}
}

func journalAppendAndRead(t *testing.T, j audit.Journal) {
	ctx, s := journalDeadline(t), scope.Scope{Project: "default", User: "alice"}
	appended := journalFill(t, j, s, 3)
	got := journalCollect(t, j.ReadScope(ctx, s, 0))
	for i, e := range got {
		meta, want := JournalEffect(s, uint64(i+1), "a")
		if diff := cmp.Diff(want, e.Data); diff != "" {
			t.Errorf("effect %d differs (-want +got):\n%s", i, diff)
		}
		if e.ID != meta.ID || e.Source != meta.Source || e.Kind != meta.Kind || e.Scope != s ||
			e.CorrelationID != meta.CorrelationID || e.CausationID != meta.CausationID || !e.Time.Equal(meta.Time) {
			t.Errorf("effect %d: meta %+v, want %+v", i, e.Meta, meta)
		}
	}
	if diff := cmp.Diff(appended, journalSequences(got)); diff != "" {
		t.Errorf("sequences differ (-appended +read):\n%s", diff)
	}
	if last, err := j.Last(ctx); err != nil || last != appended[2] {
		t.Errorf("Last = %d, %v; want %d", last, err, appended[2])
	}
}

func journalReadBehind(t *testing.T, j audit.Journal) {
	ctx, s := journalDeadline(t), scope.Scope{Project: "default", User: "alice"}
	appended := journalFill(t, j, s, 4)
	for i, after := range appended {
		if diff := cmp.Diff(appended[i+1:], journalSequences(journalCollect(t, j.ReadScope(ctx, s, after))), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("behind %d (-want +got):\n%s", after, diff)
		}
	}
	if got := journalCollect(t, j.ReadScope(ctx, s, appended[3]+1000)); len(got) != 0 {
		t.Errorf("%d effects behind the end", len(got))
	}
}

func journalReadLong(t *testing.T, j audit.Journal) {
	ctx := journalDeadline(t)
	s, noise := scope.Scope{Project: "default", User: "alice"}, scope.Scope{Project: "default", User: "bob"}
	var appended []uint64
	var after, afterNoise uint64
	for revision := uint64(1); revision <= 200; revision++ {
		after = journalAppend(t, j, s, revision, "a", after)
		appended = append(appended, after)
		if revision%3 == 0 {
			afterNoise = journalAppend(t, j, noise, revision/3, "noise", afterNoise)
		}
	}
	if diff := cmp.Diff(appended, journalSequences(journalCollect(t, j.ReadScope(ctx, s, 0)))); diff != "" {
		t.Errorf("one scope (-want +got):\n%s", diff)
	}
	all := journalSequences(journalCollect(t, j.Read(ctx, scope.Selector{Project: "default"}, 0)))
	if len(all) != 266 {
		t.Errorf("%d effects of the project, want 266", len(all))
	}
	for i := 1; i < len(all); i++ {
		if all[i] <= all[i-1] {
			t.Fatalf("sequence %d follows %d", all[i], all[i-1])
		}
	}
}

func journalReadStops(t *testing.T, j audit.Journal) {
	ctx, s := journalDeadline(t), scope.Scope{Project: "default", User: "alice"}
	journalFill(t, j, s, 30)
	for _, stop := range []int{1, 2, 20} {
		n := 0
		for _, err := range j.ReadScope(ctx, s, 0) {
			if err != nil {
				t.Fatal(err)
			}
			if n++; n == stop {
				break
			}
		}
		if n != stop {
			t.Errorf("read %d effects, want %d", n, stop)
		}
	}
}

func journalReadCommitted(t *testing.T, j audit.Journal) {
	ctx, s := journalDeadline(t), scope.Scope{Project: "default", User: "alice"}
	const before = 20
	appended := journalFill(t, j, s, before)
	after, revision := appended[before-1], uint64(before)
	var got []events.Event[events.EffectCommitted]
	// Each effect read makes another one; the read must end all the same.
	for e, err := range j.ReadScope(ctx, s, 0) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, e)
		revision++
		after = journalAppend(t, j, s, revision, "late", after)
	}
	if diff := cmp.Diff(appended, journalSequences(got)); diff != "" {
		t.Errorf("read (-committed at the call +got):\n%s", diff)
	}
}

func journalConflict(t *testing.T, j audit.Journal) {
	ctx, s := journalDeadline(t), scope.Scope{Project: "default", User: "alice"}
	other := scope.Scope{Project: "default", User: "bob"}
	first := journalAppend(t, j, s, 1, "a", 0)
	elsewhere := journalAppend(t, j, other, 1, "a", 0)
	for _, after := range []uint64{0, first + 1, elsewhere, elsewhere + 100} {
		meta, effect := JournalEffect(s, 2, "after-"+strconv.FormatUint(after, 10))
		if _, err := j.Append(ctx, meta, effect, after); !errors.Is(err, audit.ErrConflict) {
			t.Errorf("append after %d = %v, want a conflict", after, err)
		}
	}
	meta, effect := JournalEffect(scope.Scope{Project: "default", User: "carol"}, 1, "a")
	if _, err := j.Append(ctx, meta, effect, first); !errors.Is(err, audit.ErrConflict) {
		t.Errorf("first append of a scope after %d = %v, want a conflict", first, err)
	}
	if got := journalCollect(t, j.ReadScope(ctx, s, 0)); len(got) != 1 {
		t.Errorf("a refused append was committed: %d effects", len(got))
	}
	journalAppend(t, j, s, 2, "b", first)
}

// An appender that does not know whether it succeeded tries again.
func journalAppendTwice(t *testing.T, j audit.Journal) {
	ctx, s := journalDeadline(t), scope.Scope{Project: "default", User: "alice"}
	journalAppend(t, j, s, 1, "a", 0)
	meta, effect := JournalEffect(s, 1, "a")
	if _, err := j.Append(ctx, meta, effect, 0); !errors.Is(err, audit.ErrConflict) {
		t.Errorf("second append = %v, want a conflict", err)
	}
	if got := journalCollect(t, j.ReadScope(ctx, s, 0)); len(got) != 1 {
		t.Errorf("%d effects, want 1", len(got))
	}
}

func journalConcurrent(t *testing.T, j audit.Journal) {
	ctx, s := journalDeadline(t), scope.Scope{Project: "default", User: "alice"}
	const appenders = 8
	var after uint64
	for round := uint64(1); round <= 5; round++ {
		var wg sync.WaitGroup
		won := make(chan uint64, appenders)
		for i := range appenders {
			wg.Go(func() {
				meta, effect := JournalEffect(s, round, "appender-"+strconv.Itoa(i))
				switch sequence, err := j.Append(ctx, meta, effect, after); {
				case err == nil:
					won <- sequence
				case !errors.Is(err, audit.ErrConflict):
					t.Errorf("append: %v", err)
				}
			})
		}
		wg.Wait()
		if len(won) != 1 {
			t.Fatalf("round %d: %d appenders won", round, len(won))
		}
		after = <-won
	}
	if got := journalCollect(t, j.ReadScope(ctx, s, 0)); len(got) != 5 {
		t.Errorf("%d effects, want 5", len(got))
	}
}

func journalIsolation(t *testing.T, j audit.Journal) {
	ctx := journalDeadline(t)
	scopes := JournalScopes()
	appended := make([]uint64, len(scopes))
	for i, s := range scopes {
		appended[i] = journalAppend(t, j, s, 1, "a", 0)
	}
	for i, s := range scopes {
		if diff := cmp.Diff([]uint64{appended[i]}, journalSequences(journalCollect(t, j.ReadScope(ctx, s, 0)))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", s, diff)
		}
	}
}

func journalWidens(t *testing.T, j audit.Journal) {
	ctx := journalDeadline(t)
	scopes := JournalScopes()
	appended := make(map[scope.Scope]uint64, len(scopes))
	for _, s := range scopes {
		appended[s] = journalAppend(t, j, s, 1, "a", 0)
	}
	value := func(s string) *string { return &s }
	for _, sel := range []scope.Selector{
		{Project: "default"},
		{Project: "other"},
		{Project: "nobody"},
		{Project: "*"},
		{Project: ">"},
		{Project: "default", User: value("alice")},
		{Project: "default", User: value("*")},
		{Project: "default", User: value("_")},
		{Project: "default", User: value("")},
		{Project: "default", Agent: value("bot")},
		{Project: "default", Agent: value("")},
		{Project: "default", Session: value("")},
		{Project: "default", Session: value("alice")},
		{Project: "default", User: value("alice"), Agent: value("")},
	} {
		var want []uint64
		for _, s := range scopes {
			if sel.Match(s) {
				want = append(want, appended[s])
			}
		}
		if diff := cmp.Diff(want, journalSequences(journalCollect(t, j.Read(ctx, sel, 0)))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", sel, diff)
		}
	}
}

func journalRefuses(t *testing.T, j audit.Journal) {
	ctx, s := journalDeadline(t), scope.Scope{Project: "default", User: "alice"}
	meta, effect := JournalEffect(s, 1, "a")
	for name, broken := range map[string]func(*events.EffectCommitted){
		"revision":     func(e *events.EffectCommitted) { e.Revision = 0 },
		"rule":         func(e *events.EffectCommitted) { e.Rule = "" },
		"no scope":     func(e *events.EffectCommitted) { e.Scope = scope.Scope{Project: "default"} },
		"no project":   func(e *events.EffectCommitted) { e.Scope.Project = "" },
		"not a fact's": func(e *events.EffectCommitted) { e.Scope.Session = "s" },
	} {
		bad := effect
		broken(&bad)
		if _, err := j.Append(ctx, meta, bad, 0); err == nil || errors.Is(err, audit.ErrConflict) {
			t.Errorf("%s: append = %v, want a refusal", name, err)
		}
	}
	for _, err := range j.Read(ctx, scope.Selector{}, 0) {
		if err == nil {
			t.Error("a selector without a project reads something")
		}
	}
	if last, err := j.Last(ctx); err != nil || last != 0 {
		t.Errorf("Last = %d, %v: a refused effect was committed", last, err)
	}
}

func journalContext(t *testing.T, j audit.Journal) {
	s := scope.Scope{Project: "default", User: "alice"}
	journalFill(t, j, s, 2)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	meta, effect := JournalEffect(s, 3, "a")
	if _, err := j.Append(ctx, meta, effect, 2); err == nil {
		t.Error("append with a cancelled context succeeded")
	}
	failed := false
	for _, err := range j.ReadScope(ctx, s, 0) {
		failed = failed || err != nil
	}
	if !failed {
		t.Error("read with a cancelled context told of no error")
	}
}
