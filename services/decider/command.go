package decider

import (
	"context"
	"errors"
	"maps"
	"strconv"
	"time"

	"palimpsest/internal/decide"
	"palimpsest/internal/llm"
	"palimpsest/internal/memory"
	"palimpsest/internal/pipeline"
	"palimpsest/internal/store"
	"palimpsest/pkg/events"
)

// ruleAPI is the rule id of deltas that no candidate stands behind.
const ruleAPI = "api"

// command handles a command of an API caller. It always leads to a batch, so that
// the caller has an outcome. A command that cannot be carried out is a NOOP
// changed_since, which the outcome reports as a conflict.
func (s *Service) command(ctx context.Context, in events.Event[events.CommandRequested]) ([]events.Payload, error) {
	return store.ReadWhole(ctx, s.deps.Whole, func() ([]events.Payload, error) { return s.decideCommand(ctx, in) })
}

func (s *Service) decideCommand(ctx context.Context, in events.Event[events.CommandRequested]) ([]events.Payload, error) {
	state, err := s.deps.State.State(ctx, in.Data.Scope)
	if err != nil {
		return nil, err
	}
	if in.Data.Incarnation < state.Incarnation {
		return nil, nil // the scope was erased since
	}
	o := s.newOrder(in, state)
	if o.held, err = s.deps.Facts.Holds(ctx, in.Data.Scope); err != nil {
		return nil, err
	}
	ctx, bill := llm.Billed(ctx)
	err = o.carryOut(ctx)
	o.out.Spent = bill.Spent()
	var invalid *decide.InvalidCandidateError
	if errors.As(err, &invalid) {
		return nil, pipeline.Reject(events.CodeInvalidField, "candidate."+invalid.Field, err)
	}
	if err != nil || o.moot {
		return nil, err
	}
	if o.out.Asked != nil {
		o.look.decided(o.out.Candidates)
		o.out.Footprint = o.look.footprint()
	}
	return []events.Payload{o.out}, nil
}

// order is one command being carried out.
type order struct {
	s     *Service
	in    events.Event[events.CommandRequested]
	state memory.State // from before anything else was read
	held  []events.Hold
	at    time.Time
	look  *trail
	out   events.DeltasDecided
	// moot: there is nothing to do and no caller waits.
	moot bool
}

func (s *Service) newOrder(in events.Event[events.CommandRequested], state memory.State) *order {
	ref := in.Data.CommandRef
	ref.IfMatch = maps.Clone(ref.IfMatch)
	o := &order{s: s, in: in, state: state, at: in.Data.At}
	if o.at.IsZero() {
		o.at = in.Time
	}
	o.look = newTrail(lookup{s.deps, in.Data.Scope, o.at})
	o.out = events.DeltasDecided{
		Batch:   events.Batch{Header: in.Data.Header, Rule: memory.RuleCommand, Cause: events.CauseRequest},
		Command: &ref,
	}
	return o
}

func (o *order) carryOut(ctx context.Context) error {
	switch o.in.Data.Op {
	case events.OpRemember:
		return o.remember(ctx)
	case events.OpCorrect:
		return o.correct(ctx)
	case events.OpConfirm:
		return o.onFact(ctx, o.confirm)
	case events.OpRestore:
		return o.onFact(ctx, o.restore)
	case events.OpDelete:
		return o.onFact(ctx, o.remove)
	case events.OpDeleteScope:
		return o.forget(ctx)
	case events.OpRelease, events.OpReleaseDue:
		return o.release(ctx)
	case events.OpDismiss:
		return o.dismiss()
	case events.OpUndo:
		return o.undo(ctx)
	case events.OpRate:
		return o.rate()
	}
	return pipeline.Rejectf(events.CodeInvalidField, "op", "%q is not decided here", o.in.Data.Op)
}

// remember decides on a caller's statement as on any candidate. Of the write
// policy only safety applies. The breaker applies too, because an agent may
// remember in a loop. A caller that means one fact corrects it.
func (o *order) remember(ctx context.Context) error {
	c := o.candidate()
	if v := o.s.policy.Judge(c, memory.Rule{}); v.Reason == events.ReasonSafety {
		p := o.provenance(events.ReasonSafety)
		p.RuleID = v.RuleID(c)
		return o.put(events.NewNoop(p, ""))
	}
	c.Intent, c.Replaces = "", nil
	o.restOnScope()
	return o.reconcile(ctx, c, o.s.breaker())
}

// restOnScope marks a decision that depends on all facts of the scope: of two
// callers that state the same at the same time, only one may get ADD. A decision
// that depends on named facts alone carries their revisions.
func (o *order) restOnScope() {
	o.out.Asked, o.out.Basis, o.out.BasisSequence = &o.in.Data, o.state.Revision, o.state.AuditSeq
}

// rate records a rating as a NOOP about the fact, or with the answer as its source.
func (o *order) rate() error {
	p := o.provenance(events.ReasonRated)
	p.RuleID = events.RuleFeedback + string(o.in.Data.Rating.Value)
	if answer := o.in.Data.Rating.EpisodeID; answer != "" {
		p.SourceEpisodeIDs = []string{answer}
	}
	return o.put(events.NewNoop(p, o.in.Data.FactID))
}

// correct rewrites a fact with what the caller states.
func (o *order) correct(ctx context.Context) error {
	c := o.candidate()
	c.Intent, c.Replaces = "update", []string{o.in.Data.FactID}
	err := o.reconcile(ctx, c, decide.Breaker{})
	var conflict *decide.FactConflictError
	if errors.As(err, &conflict) {
		return o.noop(events.ReasonChangedSince, o.in.Data.FactID)
	}
	return err
}

// candidate is what the caller brought, as a statement of the operator's.
func (o *order) candidate() events.Candidate {
	c := *o.in.Data.Candidate
	c.SourceRole, c.Explicit = events.RoleOperator, true
	if c.ID == "" {
		c.ID = events.HashID(o.in.ID, "candidate")
	}
	if c.RuleID == "" {
		c.RuleID = ruleAPI
	}
	if c.EventTime.IsZero() {
		c.EventTime = o.at
	}
	if o.in.Data.Session != "" && len(c.SessionIDs) == 0 {
		c.SessionIDs = []string{o.in.Data.Session}
	}
	return c
}

func (o *order) reconcile(ctx context.Context, c events.Candidate, breaker decide.Breaker) error {
	decider := o.s.decider(memory.Rule{})
	decision, err := decider.Decide(ctx, []events.Candidate{c}, decide.Known{
		Scope: o.in.Data.Scope, At: o.at, Cause: o.in.ID, Lookup: o.look,
		RequestID: o.in.Data.RequestID, Actor: o.in.Data.Actor, Breaker: breaker, Held: o.held, Decay: o.s.decay,
	})
	if err != nil {
		return err
	}
	o.out.Candidates = []events.Candidate{c}
	o.out.Deltas, o.out.Mentions = decision.Deltas, decision.Mentions
	for _, d := range decision.Deltas {
		if u, ok := d.(events.Update); ok && c.Intent != "" && u.Payload().Fact != nil {
			o.expect(u.Replaces()[0], u.Payload().Fact.Revision-1)
		}
	}
	return nil
}

// expect sets the revision that a delta was made from, unless the caller named
// one. A later change must not be overwritten.
func (o *order) expect(id string, revision uint64) {
	if o.out.Command.IfMatch == nil {
		o.out.Command.IfMatch = map[string]uint64{}
	}
	if _, named := o.out.Command.IfMatch[id]; !named {
		o.out.Command.IfMatch[id] = revision
	}
}

func (o *order) provenance(why events.Reason) events.Provenance {
	return events.Provenance{
		ID:        events.HashID(o.in.ID, strconv.Itoa(len(o.out.Deltas))),
		RequestID: o.in.Data.RequestID, PromotionTS: o.at, RuleID: ruleAPI, Confidence: 1,
		Reason: why, DecidedBy: o.in.Data.Actor,
	}
}

func (o *order) noop(why events.Reason, about string) error {
	return o.put(events.NewNoop(o.provenance(why), about))
}

func (o *order) update(why events.Reason, f events.Fact, replaces ...string) error {
	f.UpdatedAt = o.at
	o.expect(f.ID, f.Revision)
	return o.put(events.NewUpdate(o.provenance(why), events.FactPayload{Fact: &f}, replaces))
}

func (o *order) delete(ids ...string) error {
	return o.put(events.NewDelete(o.provenance(events.ReasonRequested), ids))
}

func (o *order) put(d events.Delta, err error) error {
	if err != nil {
		return err
	}
	o.out.Deltas = append(o.out.Deltas, d)
	return nil
}
