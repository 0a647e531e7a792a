package deterministic

import (
	"context"
	"fmt"
	"time"

	"palimpsest/internal/decide"
	"palimpsest/internal/lex"
	"palimpsest/internal/memory"
	"palimpsest/pkg/events"
)

// Name is how deltas name this decider.
const Name = "rules@v1"

// similarLimit is how many similar facts a candidate is compared with.
const similarLimit = 5

// Decider is the deterministic decider. The zero value is ready, and safe for
// concurrent use.
type Decider struct{}

var _ decide.Decider = Decider{}

// New returns the deterministic decider.
func New() Decider { return Decider{} }

// Name implements [decide.Decider].
func (Decider) Name() string { return Name }

// Decide implements [decide.Decider].
func (Decider) Decide(ctx context.Context, candidates []events.Candidate, known decide.Known) (decide.Decision, error) {
	v := newView(ctx, known, candidates)
	for _, c := range candidates {
		if err := decideOne(v, c); err != nil {
			return decide.Decision{}, fmt.Errorf("decide candidate %s: %w", c.ID, err)
		}
	}
	return v.out, nil
}

// decision is one candidate under decision.
type decision struct {
	view *view
	c    events.Candidate
	// fact is what an ADD of the candidate makes known.
	fact  events.Fact
	words lex.Set
	marks lex.Marks
	// by is who advised what is done; empty where the steps decide alone.
	by string
	// waits: the breaker has tripped, so nothing of the candidate is done.
	waits bool
	// moved: the candidate's value took the place of the one that it retracts.
	moved bool
}

// step settles the candidate (done) or leaves it to the next.
type step func(d *decision) (done bool, err error)

func decideOne(v *view, c events.Candidate) error {
	if err := check(c, v.known); err != nil {
		return err
	}
	c = stored(c)
	d := &decision{
		view: v, c: c, fact: newFact(c, v.known),
		words: lex.NewSet(c.Text), marks: lex.MarksOf(c.Text),
	}
	first := len(v.out.Deltas)
	if err := d.take(); err != nil {
		return err
	}
	return d.overtake(first)
}

// take goes through the steps.
func (d *decision) take() error {
	steps := []step{(*decision).intent, (*decision).duplicate, (*decision).similar, (*decision).advised, (*decision).move, (*decision).replace, (*decision).add}
	if d.c.Negated && d.c.Intent == "" {
		steps = []step{(*decision).negate}
	}
	for _, s := range steps {
		done, err := s(d)
		if err != nil {
			return err
		}
		if done {
			break
		}
	}
	if d.c.Intent != "" || d.c.Negated || d.waits || d.moved {
		return nil
	}
	return d.retract()
}

// add is what is left: step 7. Where the candidate takes the place of a fact
// that it retracts, that fact is rewritten.
func (d *decision) add() (bool, error) {
	retracted, err := d.retracted()
	if err != nil {
		return false, err
	}
	var ids []string
	for _, f := range retracted {
		if sameKey(f, d.c) {
			ids = append(ids, f.ID)
		}
	}
	if len(ids) > 0 {
		return true, d.update(events.ReasonNegation, d.fact, ids...)
	}
	if held, err := d.flips(); held || err != nil {
		return true, err
	}
	return true, d.view.add(d.provenance(events.ReasonNew), d.fact, d.c)
}

// update rewrites the first of ids with what the fact says.
func (d *decision) update(reason events.Reason, fact events.Fact, ids ...string) error {
	if held, err := d.tripped(ids...); held || err != nil {
		return err
	}
	return d.view.update(d.provenance(reason), fact, ids, d.c)
}

// noop records that nothing changes, about a fact whose sources grow, or none.
func (d *decision) noop(reason events.Reason, about string) error {
	return d.view.noop(d.provenance(reason), about, d.c)
}

func (d *decision) end(reason events.Reason, ids ...string) error {
	if held, err := d.tripped(ids...); held || err != nil {
		return err
	}
	return d.view.remove(d.provenance(reason), ids, d.c)
}

func (d *decision) provenance(reason events.Reason) events.Provenance {
	p := d.view.provenance(d.c, reason)
	if d.by != "" && d.view.known.Actor == "" {
		p.DecidedBy = d.by
	}
	return p
}

func (v *view) provenance(c events.Candidate, reason events.Reason) events.Provenance {
	p := events.Provenance{
		CandidateID: c.ID, SourceEpisodeIDs: c.SourceEpisodeIDs, RequestID: v.known.RequestID,
		PromotionTS: v.known.At, RuleID: c.RuleID, Confidence: c.Confidence,
		Reason: reason, DecidedBy: Name,
	}
	if v.known.Actor != "" {
		p.DecidedBy = v.known.Actor
	}
	return p
}

// stored is a candidate with its times as stores keep them, so that what the
// batch has decided compares like what was read.
func stored(c events.Candidate) events.Candidate {
	c.EventTime = c.EventTime.UTC().Truncate(time.Microsecond)
	for _, t := range []**time.Time{&c.ValidFrom, &c.ValidUntil} {
		if *t != nil {
			at := (*t).UTC().Truncate(time.Microsecond)
			*t = &at
		}
	}
	return c
}

// newFact is the fact that a candidate proposes. Its id takes the time of the
// statement for that of the earliest source, which batches do not carry.
func newFact(c events.Candidate, known decide.Known) events.Fact {
	sources := c.SourceEpisodeIDs
	if len(sources) == 0 {
		sources = []string{known.RequestID}
	}
	f := events.Fact{
		ID:       memory.FactID(known.Scope, c.RuleID, sources, c.Kind, c.Text, c.EventTime),
		Revision: 1, Kind: c.Kind, Category: c.Category,
		Subject: c.Subject, Predicate: c.Predicate, Object: c.Object,
		Text: c.Text, Hash: memory.HashText(c.Text), Cardinality: c.Cardinality,
		Metadata: copied(c.Metadata), Sensitivity: c.Sensitivity,
		Confidence: c.Confidence, DecayRate: decayOf(c.Kind, known),
		EventTime: c.EventTime, CreatedAt: known.At, UpdatedAt: known.At,
		ValidFrom: decide.Since(c), ValidUntil: c.ValidUntil,
		SourceType: sourceType(c), SourceRole: c.SourceRole,
		SessionIDs: union(c.SessionIDs), SourceEpisodeIDs: union(c.SourceEpisodeIDs),
		EvidenceQuote: c.EvidenceQuote, RuleID: c.RuleID,
	}
	if f.SourceRole == "" {
		f.SourceRole = events.RoleUser
	}
	return f
}

func decayOf(kind events.FactKind, known decide.Known) float64 {
	switch {
	case known.Decay != nil:
		return known.Decay(kind)
	case kind == events.FactSummary:
		return 0
	}
	return memory.DefaultDecayRate
}

func sourceType(c events.Candidate) events.SourceType {
	switch {
	case c.SourceRole == events.RoleOperator:
		return events.SourceAPI
	case c.SourceRole == events.RoleTool:
		return events.SourceToolResult
	case c.Kind == events.FactSummary:
		return events.SourceConsolidation
	case !c.Explicit:
		return events.SourceExtraction
	}
	return events.SourceConversation
}

// copied leaves out the metadata keys that have a meaning of their own.
func copied(meta map[string]any) map[string]any {
	out := make(map[string]any, len(meta))
	for k, v := range meta {
		switch k {
		case events.MetaIntent, events.MetaReplaces, events.MetaSubject, events.MetaPredicate,
			events.MetaObject, events.MetaTimezone:
		default:
			out[k] = v
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out
}
