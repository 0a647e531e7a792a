package decider

import (
	"slices"
	"time"

	"palimpsest/internal/decide"
	"palimpsest/internal/memory"
	"palimpsest/pkg/events"
)

// judged is a batch after the write policy.
type judged struct {
	in        events.Event[events.CandidatesExtracted]
	decidedBy string
	// deltas need no decision: their candidates were dropped, held or given up.
	deltas events.Deltas
	// passed go on to the decision.
	passed []events.Candidate
	// taken are the candidates that the batch accounts for: not those that are left
	// to another rule, and not those of the buffer, which the batch that held them
	// accounts for.
	taken   []events.Candidate
	waiting []decide.Waiting
	// holdFor is how long a candidate waits in a session of which the batch says
	// nothing.
	holdFor time.Duration
}

// judge applies the write policy: a dropped candidate becomes a NOOP, one that is
// to be held waits, the rest passes.
func (s *Service) judge(in events.Event[events.CandidatesExtracted], rule memory.Rule, decidedBy string, held []events.Hold) (*judged, error) {
	j := &judged{in: in, decidedBy: decidedBy, holdFor: s.cfg.HoldFor}
	for _, c := range in.Data.Candidates {
		verdict := s.policy.JudgeIn(in.Data.Scope.Project, c, rule)
		if verdict.Action != decide.Drop && distrusted(c, in.Data.Episodes, held) {
			if rule.CommitOnly && s.settles(c.Kind) {
				continue
			}
			j.taken = append(j.taken, c)
			if err := j.quarantine(c, held); err != nil {
				return nil, err
			}
			continue
		}
		if verdict.Action == decide.Hold && rule.CommitOnly && s.settles(c.Kind) {
			continue
		}
		j.taken = append(j.taken, c)
		switch verdict.Action {
		case decide.Commit:
			j.passed = append(j.passed, c)
		case decide.Hold:
			j.waiting = append(j.waiting, decide.Waiting{Candidate: c, Why: verdict.Why})
		case decide.Drop:
			c.RuleID = verdict.RuleID(c)
			if err := j.noop(c, verdict.Reason, "policy"); err != nil {
				return nil, err
			}
		}
	}
	return j, nil
}

// maxQuarantined bounds the candidates of a fact scope that wait because of a
// quarantine: a source that is not trusted must not fill the buffer.
const maxQuarantined = 100

// quarantine holds a candidate until a caller releases it, or drops it where too many
// wait.
func (j *judged) quarantine(c events.Candidate, held []events.Hold) error {
	waiting := 0
	for _, h := range held {
		if h.Why == events.WhyQuarantined && h.ID != c.ID {
			waiting++
		}
	}
	for _, d := range j.deltas {
		if add, ok := d.(events.Add); ok && add.Payload().Hold != nil && add.Payload().Hold.Why == events.WhyQuarantined {
			waiting++
		}
	}
	if waiting >= maxQuarantined {
		return j.noop(c, events.ReasonHeldExpired, "quarantine")
	}
	return j.hold(decide.Waiting{Candidate: c, Why: events.WhyQuarantined})
}

// distrusted reports whether marks of quarantines name all sources of a candidate.
func distrusted(c events.Candidate, episodes []events.EpisodeRef, held []events.Hold) bool {
	trusts := func(source string) bool {
		at := slices.IndexFunc(episodes, func(e events.EpisodeRef) bool { return e.ID == source })
		return at < 0 || !slices.ContainsFunc(held, func(h events.Hold) bool { return h.Distrust != nil && h.Distrust.Names(episodes[at]) })
	}
	return len(c.SourceEpisodeIDs) > 0 && !slices.ContainsFunc(c.SourceEpisodeIDs, trusts)
}

// settles reports whether some rule holds candidates of that kind: it reads the
// same episodes later, and a candidate is to be audited once.
func (s *Service) settles(kind events.FactKind) bool {
	for _, r := range s.rules {
		if r.Enabled && r.Reads() && !r.CommitOnly && r.Emits(kind) {
			return true
		}
	}
	return false
}

// settle decides what becomes of the candidates that wait, in the buffer and in the
// batch. Those that the buffer keeps already need no delta.
func (j *judged) settle(rule memory.Rule, held []events.Hold) error {
	waiting := waitingOf(rule.ID, held)
	out := decide.Settle(append(waiting, j.waiting...), j.passed, j.ended)
	for _, w := range out.Promoted {
		j.passed = append(j.passed, w.Candidate)
	}
	for _, w := range out.Expired {
		if err := j.noop(w.Candidate, events.ReasonHeldExpired, "expired"); err != nil {
			return err
		}
	}
	for _, w := range out.Kept {
		if !w.Since.IsZero() {
			continue
		}
		if err := j.hold(w); err != nil {
			return err
		}
	}
	return nil
}

// waitingOf are the candidates of a rule that the write policy holds.
func waitingOf(rule string, held []events.Hold) (waiting []decide.Waiting) {
	for _, h := range held {
		if decide.HeldByPolicy(h) && h.Rule == rule {
			waiting = append(waiting, decide.Waiting{Candidate: h.Candidate, Why: h.Why, Since: h.HeldAt})
		}
	}
	return waiting
}

// ended reports whether all sessions of a candidate are over.
func (j *judged) ended(w decide.Waiting) bool {
	return len(w.SessionIDs) > 0 && !slices.ContainsFunc(w.SessionIDs, func(id string) bool {
		ends := slices.ContainsFunc(j.in.Data.SessionEnds, func(e events.SessionEnd) bool { return e.Session == id })
		goes := slices.ContainsFunc(j.in.Data.Episodes, func(e events.EpisodeRef) bool { return e.Session == id })
		return !ends && (goes || w.Since.IsZero() || j.in.Time.Sub(w.Since) < j.holdFor)
	})
}

func (j *judged) noop(c events.Candidate, why events.Reason, part string) error {
	noop, err := events.NewNoop(provenance(j.in, c, why, part, j.decidedBy), "")
	if err == nil {
		j.deltas = append(j.deltas, noop)
	}
	return err
}

func (j *judged) hold(w decide.Waiting) error {
	at := j.in.Time
	var due *time.Time
	if w.Why != events.WhyQuarantined { // that waits for a caller, however long
		until := at.Add(j.holdFor)
		due = &until
	}
	add, err := events.NewAdd(provenance(j.in, w.Candidate, events.ReasonHeld, "policy", j.decidedBy), events.FactPayload{
		Hold: &events.Hold{ID: w.ID, Candidate: w.Candidate, HeldAt: at, Why: w.Why, Count: 1, Since: at, Due: due},
	})
	if err == nil {
		j.deltas = append(j.deltas, add)
	}
	return err
}
