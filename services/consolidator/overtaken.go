package consolidator

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"palimpsest/internal/lex"
	"palimpsest/internal/memory"
	"palimpsest/internal/pipeline"
	"palimpsest/pkg/events"
)

// alike is the overlap of words from which a fact may be what a decider takes
// for the same, or for what replaces it.
const alike = 0.8

// overtaken reports whether something that the decision on a command rests on
// was committed since. A command waits for no turn, so what was decided a moment
// ago on a busy scope is mostly as good as ever: only facts that could have
// changed the decision make it stale.
func (s *Service) overtaken(ctx context.Context, state memory.State, b events.DeltasDecided) (bool, error) {
	if b.Asked == nil || b.Basis >= state.Revision {
		return false, nil
	}
	ground := groundOf(b)
	for e, err := range s.deps.Journal.ReadScope(ctx, b.Scope, b.BasisSequence) {
		if err != nil {
			return false, unread(err)
		}
		if e.Data.Revision > b.Basis && slices.ContainsFunc(e.Data.Facts, ground.shaken) {
			return true, nil
		}
	}
	return false, nil
}

// askAgain sends a command back to be decided on what is known now. One that is
// overtaken each time changes nothing, and its caller is told so.
func (s *Service) askAgain(b events.DeltasDecided) (again []events.Payload, conflict string) {
	if b.Asked.Attempt >= s.cfg.Attempts {
		return nil, fmt.Sprintf("the scope changed under %d attempts to decide", b.Asked.Attempt+1)
	}
	next := *b.Asked
	next.Attempt++
	return []events.Payload{next}, ""
}

// ground is what the decision on a command rests on.
type ground struct {
	named   []string        // facts that its deltas touch
	changes bool            // anything at all
	said    []events.Triple // what it states, and what that ends
	one     bool            // one value at a time
	hashes  []string
	words   lex.Set
}

func groundOf(b events.DeltasDecided) ground {
	g := ground{named: memory.NeededFacts(b)}
	for _, c := range b.Candidates {
		g.said = append(append(g.said, events.Triple{Subject: c.Subject, Predicate: c.Predicate, Object: c.Object}), c.Retracts...)
		g.one = g.one || c.Cardinality == events.One || c.Negated
		g.hashes = append(g.hashes, memory.HashText(c.Text))
		g.words = lex.NewSet(c.Text)
	}
	for _, d := range b.Deltas {
		var f *events.Fact
		switch d := d.(type) {
		case events.Add:
			f, g.changes = d.Payload().Fact, true
		case events.Update:
			f, g.changes = d.Payload().Fact, true
		case events.Delete:
			g.changes = true
		}
		if f != nil {
			g.said = append(g.said, events.Triple{Subject: f.Subject, Predicate: f.Predicate, Object: f.Object})
			g.one = g.one || f.Cardinality == events.One
			g.hashes = append(g.hashes, memory.HashText(f.Text))
		}
	}
	return g
}

// shaken reports whether a fact that was committed since could have led to
// another decision. What repeats a fact still stands if the fact still says it.
func (g ground) shaken(f events.Fact) bool {
	named, same := slices.Contains(g.named, f.ID), g.alike(f)
	if !g.changes {
		return named && (f.ValidUntil != nil || f.ArchivedAt != nil || !same)
	}
	return named || same || g.rivals(f)
}

func (g ground) alike(f events.Fact) bool {
	return slices.Contains(g.hashes, memory.HashText(f.Text)) || len(g.words) > 0 && lex.Jaccard(g.words, lex.NewSet(f.Text)) >= alike
}

// rivals reports whether the fact answers the same question, where there is one
// answer or it is the same one.
func (g ground) rivals(f events.Fact) bool {
	return slices.ContainsFunc(g.said, func(t events.Triple) bool {
		if t.Subject == "" || t.Predicate == "" || t.Predicate != f.Predicate ||
			memory.Normalize(t.Subject) != memory.Normalize(f.Subject) {
			return false
		}
		return g.one || f.Cardinality == events.One || t.Object == "" ||
			memory.Normalize(t.Object) == memory.Normalize(f.Object)
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
