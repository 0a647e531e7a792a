package scheduler

import (
	"time"

	"palimpsest/internal/memory"
	"palimpsest/internal/store"
	"palimpsest/pkg/events"
)

// situation is all that decides whether a rule is due in a scope.
type situation struct {
	last      uint64 // ordinal
	watermark uint64
	// ends above the watermark; looked at only where the rule asks for them.
	ends []events.SessionEnd
	// fired: the rule's cron fired since the oldest pending episode arrived.
	fired bool
	// unrequested: no episode above the watermark is a request.
	unrequested bool
	// run is the ordinal up to which a caller wants the rule to read now; 0 for none.
	run uint64
}

// due returns the range that the cadence or a caller asks for, not yet bounded in size.
// Once due, a rule stays due until its watermark moves.
func due(c memory.Cadence, s situation) (events.Range, bool) {
	if s.last <= s.watermark {
		return events.Range{}, false
	}
	to := uint64(0)
	if c.SessionEnd {
		for _, e := range s.ends {
			to = max(to, min(e.LastOrdinal, s.last))
		}
	}
	if byCount(c, s) || s.fired {
		to = s.last
	}
	to = max(to, min(s.run, s.last))
	return events.Range{From: s.watermark, To: to}, to > s.watermark
}

func byCount(c memory.Cadence, s situation) bool {
	return c.Every > 0 && s.last >= s.watermark && s.last-s.watermark >= c.Every
}

// causeOf says why a tick over r is issued, given the ends that it carries.
func causeOf(c memory.Cadence, s situation, carried []events.SessionEnd) events.Cause {
	switch {
	case s.run > s.watermark:
		return events.CauseRequest
	case len(carried) > 0:
		return events.CauseSessionEnd
	case byCount(c, s):
		return events.CauseEvery
	case s.fired:
		return events.CauseCron
	}
	return events.CauseSessionEnd
}

// verdict is what a standing claim leaves to do.
type verdict int

const (
	claimFree  verdict = iota // nothing is under way: claim a new range
	claimTaken                // a tick is under way
	claimLate                 // one is under way, for too long
)

// judge tells whether the tick of a claim is under way. A claim that begins
// above the watermark is too: the watermark as read lags behind the commit.
func judge(c store.Claim, watermark uint64, now time.Time, first, most time.Duration) verdict {
	if c.Range.To <= watermark {
		return claimFree
	}
	// A clock that was set back must not hold a claim for ever.
	if now.Sub(c.At).Abs() >= patience(c.Attempt, first, most) {
		return claimLate
	}
	return claimTaken
}

// patience is how long an attempt, from 0, may be under way: first · 2^attempt,
// at most most.
func patience(attempt int, first, most time.Duration) time.Duration {
	d := first
	for ; attempt > 0 && d < most; attempt-- {
		d *= 2
	}
	return min(d, most)
}

// successor is the claim that replaces a late one: the same range, as far as
// the watermark has not passed it, and the next attempt.
func successor(c store.Claim, watermark uint64, now time.Time, n int) store.Claim {
	return store.Claim{
		Range:   memory.Cut(events.Range{From: watermark, To: c.Range.To}, n),
		At:      now,
		Attempt: c.Attempt + 1,
	}
}
