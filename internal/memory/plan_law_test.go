package memory

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"palimpsest/pkg/events"
)

// drawDeltas makes deltas over a few facts, in any order, sensible or not.
func drawDeltas(t *rapid.T) events.Deltas {
	var out events.Deltas
	for i := range rapid.IntRange(1, 12).Draw(t, "deltas") {
		id := fmt.Sprintf("f%d", rapid.IntRange(0, 3).Draw(t, "fact"))
		other := fmt.Sprintf("f%d", rapid.IntRange(0, 3).Draw(t, "other"))
		at := noon.Add(time.Duration(rapid.IntRange(-3, 3).Draw(t, "hours")) * time.Hour)
		f := fact(id, rapid.SampledFrom([]string{"one", "two", "three"}).Draw(t, "text"), at, fmt.Sprintf("e%d", i))
		delta := fmt.Sprintf("d%d", i)
		switch rapid.IntRange(0, 5).Draw(t, "kind") {
		case 0, 1:
			out = append(out, addFact(delta, f))
		case 2:
			out = append(out, updateFact(delta, events.ReasonContradiction, f, id, other))
		case 3:
			out = append(out, deleteFacts(delta, events.ReasonNegation, id, other))
		case 4:
			out = append(out, noopAbout(delta, events.ReasonDuplicate, id, f.SourceEpisodeIDs...))
		case 5:
			out = append(out, updateFact(delta, events.ReasonRestored, f, id))
		}
	}
	return out
}

// Where a batch is cut, by size or by arrival, changes nothing that is known.
func TestCuttingLaw(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		deltas := drawDeltas(t)
		whole, cut, split := newWorld(), newWorld(), newWorld()
		whole.commit(t, whole.input(batch(deltas...)))
		for rest := deltas; len(rest) > 0; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "cut")
			cut.commit(t, cut.input(batch(rest[:n]...)))
			rest = rest[n:]
		}
		in := split.input(batch(deltas...))
		in.MaxBytes = rapid.IntRange(12_000, 30_000).Draw(t, "bytes")
		split.commit(t, in)
		for name, other := range map[string]*world{"cut": cut, "split": split} {
			for _, d := range []string{
				cmp.Diff(whole.facts, other.facts), cmp.Diff(whole.versions, other.versions),
				cmp.Diff(whole.entities, other.entities), cmp.Diff(whole.edges, other.edges),
			} {
				if d != "" {
					t.Fatalf("%s: %s", name, d)
				}
			}
		}
	})
}

// Versions count without a gap, none outlives its successor's beginning,
// addresses lead to rows, and closed facts are linked to nothing.
func TestVersionLaws(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld()
		effects := w.commit(t, w.input(batch(drawDeltas(t)...)))
		for id, f := range w.facts {
			if f.ValidUntil != nil && f.ValidUntil.Before(f.ValidFrom) {
				t.Fatalf("%s ends before it begins", id)
			}
			if f.ValidUntil != nil && len(f.EntityIDs) > 0 {
				t.Fatalf("closed %s is linked", id)
			}
			all := []events.Fact{f}
			for rev := uint64(1); rev < f.Revision; rev++ {
				v, ok := w.versions[Address{ID: id, Revision: rev}]
				if !ok {
					t.Fatalf("%s lacks version %d", id, rev)
				}
				if v.ValidUntil.Before(v.ValidFrom) {
					t.Fatalf("%s@%d ends before it begins", id, rev)
				}
				all = append(all, v)
			}
			for i, v := range all[1:] {
				next := f
				if i+2 < len(all) {
					next = all[i+2]
				}
				if v.ValidUntil.After(latest(v.ValidFrom, next.ValidFrom)) {
					t.Fatalf("%s@%d is valid behind its successor's beginning", id, v.Revision)
				}
			}
		}
		for _, e := range effects {
			for _, a := range e.Applied {
				if a.After == "" {
					continue
				}
				at, err := ParseAddress(a.After)
				if err != nil {
					t.Fatalf("%v", err)
				}
				if _, past := w.versions[at]; !past && w.facts[at.ID].Revision != at.Revision {
					t.Fatalf("%s leads nowhere", a.After)
				}
			}
		}
	})
}

func TestPlanIsAFunction(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b := batch(drawDeltas(t)...)
		first, err := Plan(newWorld().input(b))
		if err != nil {
			t.Fatalf("plan: %v", err)
		}
		second, err := Plan(newWorld().input(b))
		if err != nil {
			t.Fatalf("plan: %v", err)
		}
		encode := func(e []events.EffectCommitted) string { return fmt.Sprintf("%+v", e[0].Tally) + jsonOf(t, e) }
		if a, b := encode(first), encode(second); a != b {
			t.Fatalf("two plans differ: %s", cmp.Diff(a, b))
		}
	})
}
