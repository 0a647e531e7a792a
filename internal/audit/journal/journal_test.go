package journal_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go/jetstream"

	"palimpsest/internal/audit"
	"palimpsest/internal/audit/audittest"
	"palimpsest/internal/audit/journal"
	"palimpsest/internal/testengine/brokertest"
	"palimpsest/internal/topology"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

func TestJournal(t *testing.T) {
	t.Parallel()
	audittest.RunJournal(t, func(t *testing.T) audit.Journal {
		return journal.New(brokertest.Start(t).JS)
	})
}

func TestStream(t *testing.T) {
	t.Parallel()
	audittest.RunStream(t, func(t *testing.T) audittest.Recorded {
		return journal.New(brokertest.Start(t).JS)
	})
}

func TestFollowSurvivesRestart(t *testing.T) {
	t.Parallel()
	env := brokertest.Start(t)
	s := scope.Scope{Project: "default", User: "alice"}
	j := journal.New(env.JS)
	after := appendEffect(t, j, s, 1, 0)
	revision := uint64(1)
	for e, err := range j.Follow(bounded(t), scope.Exactly(s), 0) {
		if err != nil || e.Data.Revision != revision {
			t.Fatalf("revision %d, %v; want %d", e.Data.Revision, err, revision)
		}
		if revision++; revision > 4 {
			return
		}
		env.Restart(t)
		after = appendEffect(t, j, s, revision, after)
	}
}

func appendEffect(t *testing.T, j *journal.Journal, s scope.Scope, revision, after uint64) uint64 {
	t.Helper()
	meta, effect := audittest.JournalEffect(s, revision, "a")
	sequence, err := j.Append(bounded(t), meta, effect, after)
	if err != nil {
		t.Fatal(err)
	}
	return sequence
}

func revisions(t *testing.T, ctx context.Context, j *journal.Journal, s scope.Scope, after uint64) []uint64 { //nolint:revive // t first
	t.Helper()
	var all []uint64
	for e, err := range j.ReadScope(ctx, s, after) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, e.Data.Revision)
	}
	return all
}

func TestJournalIsKeptOverRestart(t *testing.T) {
	t.Parallel()
	env := brokertest.Start(t)
	s := scope.Scope{Project: "default", User: "alice"}
	j := journal.New(env.JS)
	first := appendEffect(t, j, s, 1, 0)
	env.Restart(t)
	second := appendEffect(t, j, s, 2, first)
	for name, j := range map[string]*journal.Journal{"old": j, "new": journal.New(env.JS)} {
		if diff := cmp.Diff([]uint64{1, 2}, revisions(t, bounded(t), j, s, 0)); diff != "" {
			t.Errorf("%s journal (-want +got):\n%s", name, diff)
		}
		if last, err := j.Last(bounded(t)); err != nil || last != second {
			t.Errorf("%s journal: Last = %d, %v", name, last, err)
		}
	}
}

func TestJournalReadSurvivesRestart(t *testing.T) {
	t.Parallel()
	env := brokertest.Start(t)
	s := scope.Scope{Project: "default", User: "alice"}
	j := journal.New(env.JS)
	var after uint64
	const n = 300
	for revision := uint64(1); revision <= n; revision++ {
		after = appendEffect(t, j, s, revision, after)
	}
	next := uint64(1)
	for e, err := range j.ReadScope(bounded(t), s, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Data.Revision != next {
			t.Fatalf("revision %d, want %d", e.Data.Revision, next)
		}
		if next == 50 {
			env.Restart(t)
		}
		next++
	}
	if next != n+1 {
		t.Errorf("read %d revisions, want %d", next-1, n)
	}
}

// filled returns a journal with n effects of a scope, and its stream.
func filled(t *testing.T, env *brokertest.Env, s scope.Scope, n uint64) (*journal.Journal, jetstream.Stream) {
	t.Helper()
	j := journal.New(env.JS)
	var after uint64
	for revision := uint64(1); revision <= n; revision++ {
		after = appendEffect(t, j, s, revision, after)
	}
	stream, err := env.JS.Stream(bounded(t), topology.StreamAudit)
	if err != nil {
		t.Fatal(err)
	}
	return j, stream
}

func TestJournalReadEndsWhenTheRestIsPurged(t *testing.T) {
	t.Parallel()
	env := brokertest.Start(t)
	s := scope.Scope{Project: "default", User: "alice"}
	j, stream := filled(t, env, s, 200)
	n := 0
	for _, err := range j.ReadScope(bounded(t), s, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if n++; n == 4 {
			if err := stream.Purge(bounded(t)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n < 4 || n > 200 {
		t.Errorf("read %d effects", n)
	}
}

func TestJournalLeavesNoConsumer(t *testing.T) {
	t.Parallel()
	env := brokertest.Start(t)
	s := scope.Scope{Project: "default", User: "alice"}
	j, stream := filled(t, env, s, 20)
	before := stream.CachedInfo().State.Consumers
	revisions(t, bounded(t), j, s, 0)
	info, err := stream.Info(bounded(t))
	if err != nil {
		t.Fatal(err)
	}
	if info.State.Consumers != before {
		t.Errorf("%d consumers, want %d", info.State.Consumers, before)
	}
}

func TestJournalRefusesWhatMustBeSplit(t *testing.T) {
	t.Parallel()
	env := brokertest.Start(t)
	j := journal.New(env.JS)
	meta, effect := audittest.JournalEffect(scope.Scope{Project: "default", User: "alice"}, 1, "a")
	effect.Released = []string{strings.Repeat("x", journal.MaxEffect)}
	if _, err := j.Append(bounded(t), meta, effect, 0); !errors.Is(err, journal.ErrEffectTooLarge) {
		t.Errorf("got %v", err)
	}
	effect.Released[0] = effect.Released[0][:journal.MaxEffect-4096]
	if _, err := j.Append(bounded(t), meta, effect, 0); err != nil {
		t.Errorf("just below the limit: %v", err)
	}
	if got := revisions(t, bounded(t), j, effect.Scope, 0); len(got) != 1 {
		t.Errorf("%d effects", len(got))
	}
}

func TestJournalNamesWhatItCannotRead(t *testing.T) {
	t.Parallel()
	env := brokertest.Start(t)
	s := scope.Scope{Project: "default", User: "alice"}
	if _, err := env.JS.Publish(bounded(t), "palimpsest.audit."+s.Tokens(), []byte("garbage")); err != nil {
		t.Fatal(err)
	}
	var failed error
	for _, err := range journal.New(env.JS).ReadScope(bounded(t), s, 0) {
		failed = errors.Join(failed, err)
	}
	var field *events.FieldError
	if !errors.As(failed, &field) || !strings.Contains(failed.Error(), "decode effect 1") {
		t.Errorf("got %v", failed)
	}
}

func TestJournalRefusesToReadStale(t *testing.T) {
	t.Parallel()
	env := brokertest.Start(t)
	cfg := topology.Declare(topology.Config{}).Streams[6].Config
	cfg.AllowDirect = true
	if _, err := env.JS.UpdateStream(bounded(t), cfg); err != nil {
		t.Fatal(err)
	}
	if _, err := journal.New(env.JS).Last(bounded(t)); !errors.Is(err, topology.ErrIncompatible) {
		t.Errorf("got %v", err)
	}
}

func BenchmarkJournalAppend(b *testing.B) {
	env := brokertest.Start(b)
	j := journal.New(env.JS)
	s := scope.Scope{Project: "default", User: "alice"}
	var after, revision uint64
	var err error
	for b.Loop() {
		revision++
		meta, effect := audittest.JournalEffect(s, revision, "a")
		if after, err = j.Append(context.Background(), meta, effect, after); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkJournalReadOne(b *testing.B) {
	env := brokertest.Start(b)
	j := journal.New(env.JS)
	s := scope.Scope{Project: "default", User: "alice"}
	meta, effect := audittest.JournalEffect(s, 1, "a")
	if _, err := j.Append(context.Background(), meta, effect, 0); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		for _, err := range j.ReadScope(context.Background(), s, 0) {
			if err != nil {
				b.Fatal(err)
			}
		}
	}
}
