package e2e

import (
	"context"
	"iter"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"palimpsest/internal/audit"
	"palimpsest/internal/extract/rulepack"
	"palimpsest/internal/memory"
	"palimpsest/internal/store"
	"palimpsest/internal/store/sqlite"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
	"palimpsest/services/consolidator"
)

// TestP5RebuildLaw: the effects of a conversation, applied to an empty store, give
// the same store. Applied again, they change nothing.
func TestP5RebuildLaw(t *testing.T) {
	t.Parallel()
	packs, err := rulepack.New()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		said := rapid.SliceOfN(rapid.Custom(drawRemark), 2, 20).Draw(t, "said")
		live, j := conversed(t, dir, packs, said, drawCuts(t, len(said)))
		defer func() { must(t, live.Close()) }()
		skip(t, live, j, len(said))
		want := bookkeeping(t, live)

		place, err := os.MkdirTemp(dir, "")
		must(t, err)
		made, err := sqlite.Open(context.Background(), sqlite.Config{Path: filepath.Join(place, "made.db"), Building: true})
		must(t, err)
		defer func() { must(t, made.Close()) }()
		for n, s := range said {
			_, err := made.PutEpisode(context.Background(), s.episode(person("ann"), n))
			must(t, err)
		}
		for _, left := range []int{len(j.effects), 0} { // the second time there is nothing left to apply
			if got := remake(t, made, j); got.Effects != left || got.Scopes != 1 {
				t.Fatalf("applied %+v, want %d effects", got, left)
			}
			if diff := cmp.Diff(want, bookkeeping(t, made)); diff != "" {
				t.Fatalf("(-live +rebuilt):\n%s", diff)
			}
		}
	})
}

// skip commits the burial of a range.
func skip(t *rapid.T, live *sqlite.Store, j *journal, episodes int) {
	t.Helper()
	ctx, mark, last := context.Background(), uint64(episodes), uint64(len(j.effects))
	e := events.EffectCommitted{
		Header: events.Header{Scope: person("ann").Fact()}, Revision: last + 1, Rule: "other", Cause: events.CauseEvery,
		Range: &events.Range{To: mark}, Watermark: &mark, Skipped: "poison", CommittedAt: time.Date(2025, 3, 2, 0, 0, 0, 0, time.UTC),
		Tally: events.Tally{Episodes: episodes, Skipped: episodes},
	}
	sequence, err := j.Append(ctx, events.Meta{}, e, last)
	must(t, err)
	must(t, live.Apply(ctx, e, sequence))
}

// books are what a rebuild must give back.
type books struct {
	Digest, Content string
	State           memory.State
	Ledger          []store.Account
}

func bookkeeping(t *rapid.T, from *sqlite.Store) (b books) {
	t.Helper()
	ctx := context.Background()
	var err error
	b.Digest, err = store.Digest(ctx, from, memory.ExportFull)
	must(t, err)
	b.Content, err = store.Digest(ctx, from, memory.ExportContent)
	must(t, err)
	b.State, err = from.State(ctx, person("ann").Fact())
	must(t, err)
	b.Ledger, err = from.Accounts(ctx, scope.Selector{Project: scope.DefaultProject}, []string{memory.RuleTurn, memory.RuleSleep, "other"})
	must(t, err)
	return b
}

func remake(t *rapid.T, made *sqlite.Store, j *journal) consolidator.Rebuilt {
	t.Helper()
	c, err := consolidator.New(consolidator.Config{}, consolidator.Deps{Applier: made, Facts: made, Outcomes: made, Journal: j, Log: j})
	must(t, err)
	got, err := c.Rebuild(context.Background(), j, func() {}, func(_ scope.Scope, err error) error { return err })
	must(t, err)
	must(t, made.Settle(context.Background()))
	return got
}

// All implements [audit.RebuildReader].
func (j *journal) All(ctx context.Context, after uint64) iter.Seq2[events.Event[events.EffectCommitted], error] {
	return j.ReadScope(ctx, scope.Scope{}, after)
}

// Begin implements [audit.RebuildReader].
func (*journal) Begin(context.Context) (uint64, error) { return 1, nil }

// Heads implements [audit.RebuildReader].
func (j *journal) Heads(_ context.Context, yield func(audit.Head) error) error {
	return yield(audit.Head{Scope: person("ann").Fact(), Sequence: uint64(len(j.effects))})
}
