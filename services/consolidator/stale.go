package consolidator

import (
	"context"
	"errors"
	"slices"
	"time"

	"palimpsest/internal/lex"
	"palimpsest/internal/memory"
	"palimpsest/internal/pipeline"
	"palimpsest/pkg/events"
)

// alike is the overlap of words from which a fact may be what a decider takes
// for the same. It is below what deciders use: theirs may differ.
const alike = 0.8

// errStale means that a batch has to be decided again.
var errStale = errors.New("consolidator: the decision is stale")

// stale reports whether something in the footprint of a batch changed between
// its basis and state. It reads the effects of the scope in between, so that the
// answer holds for the append that follows: AUDIT refuses that if anything was
// committed after state. Effects after state are not judged: one of them may be
// that of this very batch.
func (s *Service) stale(ctx context.Context, state memory.State, b events.DeltasDecided) (bool, error) {
	switch {
	case b.Command != nil && b.Asked == nil, len(b.Deltas) == 0, b.Basis >= state.Revision:
		return false, nil
	case b.Footprint == nil: // of a version before footprints
		return true, nil
	}
	g := groundOf(b)
	next := b.Basis + 1
	for e, err := range s.deps.Journal.ReadScope(ctx, b.Scope, b.BasisSequence) {
		switch {
		case err != nil:
			return false, unread(err)
		case e.Data.Revision < next:
			continue
		case e.Data.Revision > state.Revision:
			return next <= state.Revision, nil
		case e.Data.Revision > next, g.shaken(e.Data):
			return true, nil
		}
		next++
	}
	return next <= state.Revision, nil // what AUDIT dropped may have changed anything
}

// again returns the event that sends a stale batch back: its candidates or its
// command, to be decided on the present facts. No later batch of its rule can be committed
// first, as the watermark has not moved.
func again(b events.DeltasDecided) events.Payload {
	if b.Asked != nil {
		next := *b.Asked
		next.Attempt++
		return next
	}
	next := events.CandidatesExtracted{
		Batch: b.Batch, SessionEnds: b.SessionEnds, Episodes: b.Episodes, Candidates: b.Candidates,
	}
	next.Attempt++
	next.Stale++
	return next
}

// early reports whether a stale batch has to wait before it is sent back, and how
// long: one that was stale before does, once, and is judged again afterwards.
func early(in events.Event[events.DeltasDecided]) (time.Duration, bool) {
	times := in.Data.Stale
	if in.Data.Asked != nil {
		times = in.Data.Asked.Attempt
	}
	if times == 0 || in.Delivery > 1 {
		return 0, false
	}
	return pause(times), true
}

// pause is how long a batch waits that was stale that many times: 100 ms, then
// twice as long each time, at most 30 s.
func pause(times int) time.Duration {
	return min(100*time.Millisecond<<min(times-1, 10), 30*time.Second)
}

// ground is what a decision rests on.
type ground struct {
	facts     map[string]uint64 // looked at, at that revision
	rewritten []string          // ids that its deltas rewrite or close
	hashes    map[string]bool
	words     []lex.Set
	keys      map[question][]string // the objects that matter; an empty one is any
	// settles are the ids of the candidates, some of them from the held buffer.
	settles []string
}

// question is what facts of one subject and predicate answer.
type question struct{ subject, predicate string }

func groundOf(b events.DeltasDecided) ground {
	g := ground{facts: b.Footprint.Facts, hashes: map[string]bool{}, keys: map[question][]string{}}
	for _, hash := range b.Footprint.Hashes {
		g.hashes[hash] = true
	}
	for _, key := range b.Footprint.Keys {
		g.ask(key)
	}
	for _, d := range b.Deltas {
		g.settles = append(g.settles, d.Provenance().CandidateID)
	}
	for _, c := range b.Candidates {
		if g.hashes[memory.HashText(c.Text)] {
			g.words = append(g.words, lex.NewSet(c.Text))
		}
	}
	for _, d := range b.Deltas {
		switch d := d.(type) {
		case events.Add:
			g.learn(d.Payload().Fact)
		case events.Update:
			g.learn(d.Payload().Fact)
			g.rewritten = append(g.rewritten, d.Replaces()...)
		case events.Delete:
			g.rewritten = append(g.rewritten, d.Replaces()...)
		}
	}
	return g
}

// learn takes up what a delta makes known, which may be more than was looked up.
func (g *ground) learn(f *events.Fact) {
	if f == nil {
		return
	}
	g.hashes[memory.HashText(f.Text)] = true
	about := events.Triple{Subject: f.Subject, Predicate: f.Predicate, Object: f.Object}
	if f.Cardinality == events.One {
		about.Object = ""
	}
	g.ask(about)
}

func (g *ground) ask(t events.Triple) {
	if t.Subject != "" && t.Predicate != "" {
		q := question{t.Subject, t.Predicate}
		g.keys[q] = append(g.keys[q], lex.Object(t.Object))
	}
}

// shaken reports whether an effect could have led to another decision. A fact
// that only gained sources says what it said, and matters where it is rewritten.
func (g *ground) shaken(e events.EffectCommitted) bool {
	changed := map[string]bool{}
	for _, a := range e.Applied {
		changed[a.After] = true
	}
	for _, f := range e.Facts {
		if slices.Contains(g.rewritten, f.ID) {
			return true
		}
		if !changed[memory.AddressOf(f).String()] {
			continue
		}
		if seen, looked := g.facts[f.ID]; looked && f.Revision > seen || g.answers(f) || g.resembles(f) {
			return true
		}
	}
	if slices.ContainsFunc(e.Released, func(id string) bool { return slices.Contains(g.settles, id) }) {
		return true // a caller released or dismissed it
	}
	return slices.ContainsFunc(e.Versions, g.answers) || slices.ContainsFunc(e.Holds, g.awaits)
}

// answers reports whether the lookups of the decision would have found a fact.
func (g *ground) answers(f events.Fact) bool {
	if g.hashes[memory.HashText(f.Text)] {
		return true
	}
	return slices.ContainsFunc(g.keys[question{f.Subject, f.Predicate}], func(object string) bool {
		return object == "" || f.Cardinality == events.One || object == lex.Object(f.Object)
	})
}

// resembles reports whether a fact says nearly what a candidate does.
func (g *ground) resembles(f events.Fact) bool {
	words := lex.NewSet(f.Text)
	return slices.ContainsFunc(g.words, func(of lex.Set) bool { return lex.Jaccard(of, words) >= alike })
}

// awaits reports whether a candidate is held on a matter that was looked at.
func (g *ground) awaits(h events.Hold) bool {
	c := h.Candidate
	_, looked := g.facts[h.FactID]
	return looked || slices.Contains(g.rewritten, h.FactID) || g.answers(events.Fact{
		Text: c.Text, Subject: c.Subject, Predicate: c.Predicate, Object: c.Object, Cardinality: c.Cardinality,
	})
}

// planErr marks what can never be planned as refused: the same batch on the same
// rows fails for ever, and nothing of its rule may stall behind it.
func planErr(err error) error {
	if field := (*events.FieldError)(nil); errors.As(err, &field) {
		return err // a refusal by itself
	}
	return pipeline.Reject(events.CodePoison, "deltas", err)
}
