package memory

import (
	"cmp"
	"maps"
	"slices"

	"palimpsest/pkg/events"
)

// tally counts what the batch settles: each episode of its range and each
// candidate once. A late batch settles no episode, its range was counted as
// skipped; one without a range brings candidates that were counted with theirs.
func (p *planner) tally() events.Tally {
	b := p.in.Batch
	var t events.Tally
	if MovesWatermark(b) {
		t.Episodes = int(b.Range.Len())
		if b.Skipped != "" {
			t.Skipped = t.Episodes
		}
	}
	fates := make(map[string]fate, len(b.Candidates))
	for _, c := range b.Candidates {
		fates[c.ID] = dropped
	}
	for _, s := range p.settled {
		if id := s.delta.Provenance().CandidateID; id != "" {
			fates[id] = max(fates[id], fateOf(s.delta))
		}
	}
	for id, f := range fates {
		_, ours := p.candidates[id]
		// A candidate that left the buffer meanwhile was counted by the batch that held it.
		if _, waited := p.buffered[id]; waited || !ours || counted(b) {
			continue
		}
		t.Candidates++
		switch f {
		case dropped:
			t.Dropped++
		case held, waits:
			t.Held++
		case decided:
			t.Decided++
		}
	}
	t.Settled = p.settlements(fates)
	return t
}

// counted reports whether a batch brings what an effect has counted before: that
// of a release, when it was held; a late one without a range, with its range. The
// facts that maintenance works on are no candidates of episodes and count nowhere.
func counted(b events.DeltasDecided) bool {
	if b.Upkeep != nil {
		return true
	}
	if b.Command != nil {
		switch b.Command.Op {
		case events.OpRelease, events.OpReleaseDue, events.OpUndo:
			return true
		}
		return false
	}
	return b.Cause == events.CauseLate && b.Range.Empty()
}

// settlements accounts for the candidates that have left the held buffer.
func (p *planner) settlements(fates map[string]fate) []events.Settlement {
	byRule := map[string]events.Settlement{}
	for id, h := range p.buffered {
		if _, waits := p.held[id]; waits || h.Rule == "" {
			continue
		}
		s := byRule[h.Rule]
		s.Rule = h.Rule
		if fates[id] == decided {
			s.Decided++
		} else {
			s.Dropped++
		}
		byRule[h.Rule] = s
	}
	var out []events.Settlement
	for _, rule := range slices.Sorted(maps.Keys(byRule)) {
		out = append(out, byRule[rule])
	}
	return out
}

// fate is what became of a candidate; of several, the highest counts.
type fate int

const (
	dropped fate = iota
	held         // by the write policy, which keeps nothing of it
	decided
	waits // in the held buffer, though a part of it may have been decided
)

func fateOf(d events.Delta) fate {
	if isHold(d) {
		return waits
	}
	if _, noop := d.(events.Noop); noop {
		switch d.Provenance().Reason {
		case events.ReasonHeld:
			return held
		case events.ReasonHeldExpired, events.ReasonNotEmitted, events.ReasonSafety, events.ReasonTransient, events.ReasonSensitive, events.ReasonDismissed,
			events.ReasonFactConflict, events.ReasonChurn, events.ReasonUndone:
			return dropped
		}
	}
	return decided
}

// outcomes tells each correlation id of the range what came of its episodes,
// in the order of their ordinals; that of a command what came of the command.
func (p *planner) outcomes(revision uint64) []events.Outcome {
	b := p.in.Batch
	if b.Command != nil {
		o := events.Outcome{
			CorrelationID: cmp.Or(p.in.CorrelationID, b.Command.RequestID), Rule: RuleCommand, Revision: revision,
			Skipped: b.Skipped, Conflict: p.conflict, Results: p.results(func(events.Delta) bool { return true }),
		}
		for _, r := range o.Results {
			if r.Event == events.ChangeDelete {
				o.Closed++
			}
		}
		return []events.Outcome{o}
	}
	episodes := slices.Clone(b.Episodes)
	slices.SortStableFunc(episodes, func(a, b events.EpisodeRef) int { return cmp.Compare(a.Ordinal, b.Ordinal) })
	var order []string
	byID := map[string][]string{}
	for _, e := range episodes {
		if e.CorrelationID == "" {
			continue
		}
		if _, seen := byID[e.CorrelationID]; !seen {
			order = append(order, e.CorrelationID)
		}
		byID[e.CorrelationID] = append(byID[e.CorrelationID], e.ID)
	}
	out := make([]events.Outcome, 0, len(order))
	for _, id := range order {
		own := byID[id]
		out = append(out, events.Outcome{
			CorrelationID: id, Rule: b.Rule, EpisodeIDs: own, Revision: revision, Skipped: b.Skipped,
			Results: p.results(func(d events.Delta) bool {
				return slices.ContainsFunc(d.Provenance().SourceEpisodeIDs, func(s string) bool { return slices.Contains(own, s) })
			}),
		})
	}
	return out
}

// results never returns nil: an outcome without results is an empty list.
func (p *planner) results(belongs func(events.Delta) bool) []events.Result {
	out := []events.Result{}
	for _, s := range p.settled {
		if belongs(s.delta) {
			out = append(out, s.result)
		}
	}
	return out
}
