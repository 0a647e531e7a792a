package memory

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"palimpsest/pkg/events"
)

// RuleCommand is the rule that effects of commands are filed under.
const RuleCommand = events.RuleCommand

// MaxEffectBytes is the largest effect as JSON; a larger plan is split over
// consecutive revisions.
const MaxEffectBytes = 1 << 20

// maxCloses bounds the facts that one piece of a Delete closes, so that a
// Delete of a whole scope can be split.
const maxCloses = 50

// PlanInput is everything a plan follows from: no clock, no store.
type PlanInput struct {
	// State is the scope's before the plan.
	State State
	Batch events.DeltasDecided
	// Facts holds the newest version of each fact that [NeededFacts] names and
	// that exists, valid or not.
	Facts []events.Fact
	// Earlier holds all versions of the facts that are closed by now: reopening
	// one takes its entities from the last version that had any.
	Earlier []events.Fact
	// Entities holds those known by the names of [NeededNames] and the ids of
	// [NeededEntities].
	Entities []events.Entity
	// Done holds the effects that an attempt at the same command committed before
	// it was stopped.
	Done []events.EffectCommitted
	// Held is the scope's held buffer.
	Held []events.Hold
	// Conflict says why a command must change nothing, where that was found
	// before; empty otherwise.
	Conflict string
	// Spared are the facts that maintenance must leave alone after all: they were
	// read since.
	Spared map[string]bool
	// At is when the effect counts as committed.
	At time.Time
	// CorrelationID is that of the batch: where the outcome of a command goes.
	CorrelationID string
	// MaxBytes stands in for MaxEffectBytes where it is not 0.
	MaxBytes int
}

// NeededFacts returns the ids of the facts that the deltas of a batch touch.
func NeededFacts(b events.DeltasDecided) []string {
	var ids []string
	for _, d := range b.Deltas {
		switch d := d.(type) {
		case events.Add:
			if f := d.Payload().Fact; f != nil {
				ids = append(ids, f.ID)
			}
		case events.Update:
			ids = append(ids, d.Replaces()...)
		case events.Delete:
			ids = append(ids, d.Replaces()...)
		case events.Noop:
			ids = append(ids, d.About())
		}
	}
	if b.Command != nil {
		for id := range b.Command.IfMatch {
			ids = append(ids, id)
		}
	}
	return sortedSet(ids)
}

// NeededNames returns the names of the entities that a batch may touch: what
// its deltas mention, and both ends of the facts they name: the subject, and the names
// that the object may hold.
func NeededNames(b events.DeltasDecided, facts []events.Fact) []string {
	var names []string
	ends := func(f *events.Fact) {
		if f != nil {
			names = append(append(names, f.Subject), namesIn(f.Object)...)
		}
	}
	for _, mentions := range b.Mentions {
		for _, m := range mentions {
			names = append(append(names, m.Name), m.Aliases...)
		}
	}
	for i := range facts {
		ends(&facts[i])
	}
	for _, d := range b.Deltas {
		switch d := d.(type) {
		case events.Add:
			ends(d.Payload().Fact)
		case events.Update:
			ends(d.Payload().Fact)
			if e := d.Payload().Entity; e != nil {
				names = append(names, e.CanonicalName)
			}
		}
	}
	return sortedSet(names)
}

// Plan computes the effects of a decided batch: one, or several of consecutive
// revisions where one would exceed the size limit; the last carries watermark,
// session ends, outcomes and tally. It is a function of its input, and where a
// batch is cut changes no fact, version, entity or edge.
//
// A command that names a revision which is no longer the newest changes
// nothing: its deltas become NOOPs `changed_since`, its outcome says Conflict.
func Plan(in PlanInput) ([]events.EffectCommitted, error) {
	p := newPlanner(in)
	deltas, err := p.resume(in.Batch.Deltas)
	if err == nil {
		deltas, err = splitCloses(p.conflicting(deltas))
	}
	if err != nil {
		return nil, fmt.Errorf("plan: %w", err)
	}
	if whole, fits, err := p.undivided(deltas); err != nil {
		return nil, fmt.Errorf("plan: %w", err)
	} else if fits {
		return []events.EffectCommitted{whole}, nil
	}
	var effects []events.EffectCommitted
	for rest := deltas; len(rest) > 0; {
		effect, n, err := p.longest(rest)
		if err != nil {
			return nil, fmt.Errorf("plan: %w", err)
		}
		effects = append(effects, effect)
		rest = rest[n:]
	}
	return p.settle(effects)
}

// undivided plans the whole batch as one effect, settled ranges included. Nearly
// every batch fits into one, which is then encoded only once to be measured.
func (p *planner) undivided(deltas events.Deltas) (whole events.EffectCommitted, fits bool, err error) {
	trial := p.clone()
	for _, d := range deltas {
		trial.apply(d)
	}
	whole = trial.close(trial.effect())
	size, err := sizeOf(whole)
	return whole, size <= p.maxBytes(), err
}

// longest plans as many of the deltas as fit into one effect, halving until
// they do, and keeps what it planned.
func (p *planner) longest(deltas events.Deltas) (events.EffectCommitted, int, error) {
	for n := len(deltas); ; n = (n + 1) / 2 {
		trial := p.clone()
		for _, d := range deltas[:n] {
			trial.apply(d)
		}
		effect := trial.effect()
		size, err := sizeOf(effect)
		if err != nil {
			return events.EffectCommitted{}, 0, err
		}
		if size <= p.maxBytes() {
			*p = *trial
			return effect, n, nil
		}
		if n == 1 {
			return events.EffectCommitted{}, 0, &events.FieldError{
				Field: "deltas", Code: events.CodeTooLarge,
				Reason: fmt.Sprintf("delta %s alone makes an effect of %d bytes", deltas[0].Provenance().ID, size),
			}
		}
	}
}

// settle gives the last effect what only the whole batch has, in an effect of
// its own where that would not fit.
func (p *planner) settle(effects []events.EffectCommitted) ([]events.EffectCommitted, error) {
	if len(effects) == 0 {
		effects = append(effects, p.effect())
	}
	whole := p.close(effects[len(effects)-1])
	size, err := sizeOf(whole)
	if err != nil {
		return nil, fmt.Errorf("plan: %w", err)
	}
	if size > p.maxBytes() && len(whole.Applied) > 0 {
		p.reset()
		effects, whole = append(effects, events.EffectCommitted{}), p.close(p.effect())
	}
	if whole, err = p.shed(whole); err != nil {
		return nil, fmt.Errorf("plan: %w", err)
	}
	effects[len(effects)-1] = whole
	return effects, nil
}

// shed leaves results out of outcomes until the effect that closes the batch
// fits: a command that closes a hundred thousand facts must have an outcome, but
// cannot list them in it.
func (p *planner) shed(e events.EffectCommitted) (events.EffectCommitted, error) {
	most := 0
	for _, o := range e.Outcomes {
		most = max(most, len(o.Results))
	}
	for ; ; most /= 2 {
		size, err := sizeOf(e)
		if err != nil || size <= p.maxBytes() {
			return e, err
		}
		if most == 0 {
			return e, &events.FieldError{
				Field: "outcomes", Code: events.CodeTooLarge, Reason: fmt.Sprintf("what the batch settles makes an effect of %d bytes", size),
			}
		}
		e.Outcomes = slices.Clone(e.Outcomes)
		for i, o := range e.Outcomes {
			if keep := most / 2; len(o.Results) > keep {
				e.Outcomes[i].Results = slices.Clip(o.Results[:keep])
				e.Outcomes[i].Omitted += len(o.Results) - keep
			}
		}
	}
}

// close adds what the batch settles to its last effect.
func (p *planner) close(e events.EffectCommitted) events.EffectCommitted {
	b := p.in.Batch
	e.SessionEnds = b.SessionEnds
	e.Skipped = b.Skipped
	e.Tally = p.tally()
	e.Spent = events.SpentByModel(b.Spent)
	e.Outcomes = p.outcomes(e.Revision)
	if MovesWatermark(b) {
		to := b.Range.To
		e.Watermark = &to
	}
	return e
}

// MovesWatermark reports whether the commit of a batch moves the watermark of
// its (rule, scope): not that of a command, of a late batch or of maintenance.
func MovesWatermark(b events.DeltasDecided) bool {
	return b.Command == nil && b.Cause != events.CauseLate && b.Upkeep == nil
}

func (p *planner) maxBytes() int {
	if p.in.MaxBytes > 0 {
		return p.in.MaxBytes
	}
	return MaxEffectBytes
}

func sizeOf(e events.EffectCommitted) (int, error) {
	raw, err := json.Marshal(e)
	return len(raw), err
}

// splitCloses cuts Deletes of many facts into several of the same provenance.
func splitCloses(deltas events.Deltas) (events.Deltas, error) {
	var out events.Deltas
	for _, d := range deltas {
		del, ok := d.(events.Delete)
		if !ok || len(del.Replaces()) <= maxCloses {
			out = append(out, d)
			continue
		}
		for ids := range slices.Chunk(del.Replaces(), maxCloses) {
			part, err := events.NewDelete(del.Provenance(), ids)
			if err != nil {
				return nil, err
			}
			out = append(out, part)
		}
	}
	return out, nil
}

func sortedSet(ids []string) []string {
	ids = slices.DeleteFunc(ids, func(id string) bool { return id == "" })
	slices.Sort(ids)
	return slices.Compact(ids)
}
