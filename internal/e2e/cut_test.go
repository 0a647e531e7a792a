package e2e

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"palimpsest/internal/audit"
	"palimpsest/internal/decide"
	"palimpsest/internal/decide/deterministic"
	"palimpsest/internal/embed/local"
	"palimpsest/internal/extract"
	"palimpsest/internal/extract/rulepack"
	"palimpsest/internal/memory"
	"palimpsest/internal/pipeline"
	"palimpsest/internal/store/sqlite"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
	"palimpsest/services/consolidator"
	"palimpsest/services/decider"
	"palimpsest/services/extractor"
)

// remarks are the lines that a conversation is drawn from: additions, repetitions,
// refinements, contradictions, negations, held statements, and small talk.
var remarks = []turn{
	"I live in Oslo.", "I moved to Bergen.", "I moved to Lisbon last week.", "I no longer live in Bergen.", "I live in Oslo.",
	"I like Python.", "I like Python.", "I don't like Python any more.", "I love hiking and climbing.", "I prefer tea over coffee.",
	"I work in tech.", "I work at Fenwick as a senior engineer.", "I've left Fenwick, I'm with Tarn Institute now.",
	"I'm vegetarian.", "I started eating meat again.", "My brother Tom hates cilantro.", "Tom lives in Quito.", "My phone number ends in 41.",
	"My new number ends in 42.", "My name is Nora.", "Call me Bo.", "I'm allergic to peanuts.", "I think I might move to Rome.",
	"I have a dog named Rex.", "Rex died last year.", "Never mind.", "What's the weather like?", "Actually, that's wrong.",
	"I am learning Japanese.", "Remember that my meeting is on Friday.", "assistant: What do you do there?", "assistant: Where do you live now?", "Yes.", "No.",
	"In Perth.", "As a hydrologist.",
}

// TestCuttingLaw: the facts at the end do not depend on how the episodes were cut
// into ticks.
func TestCuttingLaw(t *testing.T) {
	t.Parallel()
	packs, err := rulepack.New()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		said := rapid.SliceOfN(rapid.Custom(drawRemark), 2, 30).Draw(t, "said")
		each := make([]int, len(said))
		for n := range each {
			each[n] = 1
		}
		want := consolidated(t, dir, packs, said, each)
		for range 2 {
			cuts := drawCuts(t, len(said))
			if diff := cmp.Diff(want, consolidated(t, dir, packs, said, cuts)); diff != "" {
				t.Fatalf("%v in ticks of %v (-one by one +so):\n%s", said, cuts, diff)
			}
		}
	})
}

// remark is a turn in one of two sessions.
type remark struct {
	session string
	turn    turn
}

func drawRemark(t *rapid.T) remark {
	return remark{
		session: rapid.SampledFrom([]string{"s1", "s1", "s1", "s2"}).Draw(t, "session"),
		turn:    rapid.SampledFrom(remarks).Draw(t, "turn"),
	}
}

func drawCuts(t *rapid.T, n int) (cuts []int) {
	for n > 0 {
		c := rapid.IntRange(1, n).Draw(t, "episodes")
		cuts = append(cuts, c)
		n -= c
	}
	return cuts
}

// stages are the services between a tick and its facts.
type stages struct {
	extract, decide, commit pipeline.Stage
}

// consolidated runs both shipped rules over a conversation, in ticks of the
// given lengths, and returns the export.
func consolidated(t *rapid.T, dir string, packs extract.Extractor, said []remark, cuts []int) string {
	t.Helper()
	st, _ := conversed(t, dir, packs, said, cuts)
	defer func() { must(t, st.Close()) }()
	snapshot, err := st.Snapshot(context.Background(), person("ann").Fact())
	must(t, err)
	lines, err := memory.Export(snapshot, memory.ExportContent)
	must(t, err)
	var out bytes.Buffer
	must(t, memory.WriteExport(&out, lines))
	return out.String()
}

// conversed is the store and the journal that a conversation leaves; the caller
// closes the store.
func conversed(t *rapid.T, dir string, packs extract.Extractor, said []remark, cuts []int) (*sqlite.Store, *journal) {
	t.Helper()
	ctx := context.Background()
	dir, err := os.MkdirTemp(dir, "")
	must(t, err)
	st, err := sqlite.Open(ctx, sqlite.Config{Path: filepath.Join(dir, "memory.db"), Embedder: local.New().Info()})
	must(t, err)
	x, err := extractor.New(extractor.Config{}, extractor.Deps{Episodes: st, Extractors: map[string]extract.Extractor{"rulepack": packs}})
	must(t, err)
	d, err := decider.New(decider.Config{}, decider.Deps{
		State: st, Whole: st, Facts: st, Search: st, Deciders: map[string]decide.Decider{"rules": deterministic.New()},
	})
	must(t, err)
	j := &journal{}
	c, err := consolidator.New(consolidator.Config{}, consolidator.Deps{Applier: st, Facts: st, Outcomes: st, Journal: j, Log: j})
	must(t, err)
	run := stages{extract: x.Stages()[0], decide: d.Stages()[0], commit: c.Stages()[0]}

	who := person("ann")
	for n, s := range said {
		_, err := st.PutEpisode(ctx, s.episode(who, n))
		must(t, err)
	}
	for _, rule := range []string{memory.RuleTurn, memory.RuleSleep} {
		from := uint64(0)
		for _, n := range cuts {
			to := from + uint64(n)
			run.tick(t, events.TickIssued{Batch: events.Batch{
				Header: events.Header{Scope: who.Fact()}, Rule: rule, Range: events.Range{From: from, To: to}, Cause: events.CauseEvery,
			}})
			from = to
		}
	}
	return st, j
}

// episode is the remark as the n-th thing said.
func (r remark) episode(who scope.Scope, n int) memory.Episode {
	role, content := r.turn.split()
	who.Session = r.session
	at := time.Date(2025, 3, 1, 9, n, 0, 0, time.UTC)
	return memory.Episode{
		ID: fmt.Sprintf("e%d", n), Source: "test", Scope: who, Role: events.Role(role), Content: content,
		Timestamp: at, ArrivedAt: at, Mode: events.ModePersistent, Seq: uint64(n + 1),
	}
}

func must(t *rapid.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// tick takes one tick all the way, and again from where it is sent back to.
func (s stages) tick(t *rapid.T, tick events.TickIssued) {
	t.Helper()
	cause := events.HashID(tick.Identity()...)
	queue := []events.Payload{tick}
	for n := 0; len(queue) > 0; n++ {
		p := queue[0]
		queue = queue[1:]
		var stage pipeline.Stage
		switch p.(type) {
		case events.TickIssued:
			stage = s.extract
		case events.CandidatesExtracted:
			stage = s.decide
		case events.DeltasDecided:
			stage = s.commit
		default:
			continue
		}
		if n > 20 {
			t.Fatalf("tick %+v does not end", tick)
		}
		cause = events.HashID(cause, string(p.Kind()))
		// Later than all that was said: no fact is of the future.
		meta := events.Meta{ID: cause, Source: "test", Time: time.Date(2025, 3, 2, 0, 0, 0, 0, time.UTC)}
		subject, head, body, err := events.Encode(meta, p)
		must(t, err)
		out, err := stage.Handle(context.Background(), events.Raw{Subject: subject, Header: head, Body: body, Sequence: 1, Delivery: 1})
		must(t, err)
		queue = append(queue, out...)
	}
}

// journal is an AUDIT stream of one scope in memory.
type journal struct {
	effects []events.Event[events.EffectCommitted]
}

// Append implements [audit.Appender].
func (j *journal) Append(_ context.Context, meta events.Meta, e events.EffectCommitted, after uint64) (uint64, error) {
	if after != uint64(len(j.effects)) {
		return 0, audit.ErrConflict
	}
	meta.Sequence = after + 1
	j.effects = append(j.effects, events.Event[events.EffectCommitted]{Meta: meta, Data: e})
	return meta.Sequence, nil
}

// ReadScope implements [audit.Reader].
func (j *journal) ReadScope(_ context.Context, _ scope.Scope, after uint64) iter.Seq2[events.Event[events.EffectCommitted], error] {
	effects := slices.Clone(j.effects[after:])
	return func(yield func(events.Event[events.EffectCommitted], error) bool) {
		for _, e := range effects {
			if !yield(e, nil) {
				return
			}
		}
	}
}

// Read implements [audit.Reader].
func (j *journal) Read(ctx context.Context, _ scope.Selector, after uint64) iter.Seq2[events.Event[events.EffectCommitted], error] {
	return j.ReadScope(ctx, scope.Scope{}, after)
}

// Last implements [audit.Reader].
func (j *journal) Last(context.Context) (uint64, error) { return uint64(len(j.effects)), nil }

// Write implements [audit.Writer]; nothing reads it.
func (*journal) Write(context.Context, []events.Event[events.EffectCommitted]) error { return nil }
