package decider

import (
	"context"
	"slices"

	"palimpsest/internal/decide"
	"palimpsest/pkg/events"
)

// release decides again on a held candidate, on the facts of now: a later
// statement wins. One that the write policy holds, and that nothing supports when it
// is due, expires: a user who falls silent ends no wait. The breaker bounds a release that is due. It does not bound one
// that a caller asked for.
func (o *order) release(ctx context.Context) error {
	due := o.in.Data.Op == events.OpReleaseDue
	at := slices.IndexFunc(o.held, func(h events.Hold) bool { return h.ID == o.in.Data.HoldID })
	switch {
	case at < 0 && due:
		o.moot = true // released meanwhile
		return nil
	case at < 0:
		return o.noop(events.ReasonChangedSince, "")
	}
	h := o.held[at]
	if due && h.Why == events.WhyQuarantined {
		o.moot = true // of a version that gave it a time
		return nil
	}
	o.restOnScope()
	if due && decide.HeldByPolicy(h) && !o.supported(h) {
		return o.drop(h, events.ReasonHeldExpired)
	}
	o.out.Candidates = []events.Candidate{h.Candidate}
	known := decide.Known{
		Scope: o.in.Data.Scope, At: o.at, Cause: o.in.ID, Lookup: o.look, Held: o.held, Decay: o.s.decay,
	}
	if len(h.Candidate.SourceEpisodeIDs) == 0 {
		known.RequestID = o.in.Data.RequestID // a caller stated it
	}
	if due {
		known.Breaker = o.s.breaker()
	} else {
		known.Actor = o.in.Data.Actor
	}
	decider := o.s.decider(o.s.rule(h.Rule))
	decision, err := decider.Decide(ctx, o.out.Candidates, known)
	if _, refused := refusedCandidate(err); refused {
		return o.drop(h, events.ReasonFactConflict) // the fact can no longer be changed
	}
	if err != nil {
		return err
	}
	o.out.Deltas, o.out.Mentions = decision.Deltas, decision.Mentions
	return nil
}

// supported reports whether the others that its rule holds support a candidate whose
// time has come. No session says more of it.
func (o *order) supported(h events.Hold) bool {
	s := decide.Settle(waitingOf(h.Rule, o.held), nil, func(w decide.Waiting) bool { return w.ID == h.ID })
	return slices.ContainsFunc(s.Promoted, func(w decide.Waiting) bool { return w.ID == h.ID })
}

// dismiss takes what is held out of the buffer, undecided.
func (o *order) dismiss() error {
	at := slices.IndexFunc(o.held, func(h events.Hold) bool { return h.ID == o.in.Data.HoldID })
	if at < 0 {
		return o.noop(events.ReasonChangedSince, "")
	}
	o.restOnScope()
	return o.drop(o.held[at], events.ReasonDismissed)
}

// drop takes a candidate out of the held buffer undecided.
func (o *order) drop(h events.Hold, why events.Reason) error {
	p := o.provenance(why)
	p.CandidateID, p.SourceEpisodeIDs = h.ID, h.Candidate.SourceEpisodeIDs
	return o.put(events.NewNoop(p, h.FactID))
}

// dropHeld takes out what waits to change facts that the command closes: what
// is forgotten on request must not come back of itself.
func (o *order) dropHeld(closed func(events.Hold) bool) error {
	for _, h := range o.held {
		if h.Distrust != nil || !closed(h) {
			continue
		}
		if err := o.drop(h, events.ReasonHeldExpired); err != nil {
			return err
		}
	}
	return nil
}
