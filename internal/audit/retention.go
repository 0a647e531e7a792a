package audit

import (
	"fmt"
	"slices"
	"time"

	"palimpsest/pkg/events"
)

// Retention is how long a log keeps the records that [Reports.Safety] and
// [Reports.Feedback] count, after they were applied. 0 keeps them for ever. A log
// removes such a record within hours after its time; the effect stays.
type Retention struct {
	// Safety is that of candidates which the write policy dropped.
	Safety time.Duration
	// Feedback is that of ratings.
	Feedback time.Duration
}

// DefaultRetention is 90 and 180 days.
func DefaultRetention() Retention {
	const day = 24 * time.Hour
	return Retention{Safety: 90 * day, Feedback: 180 * day}
}

// Validate refuses what is negative or no whole number of seconds.
func (r Retention) Validate() error {
	for _, s := range []struct {
		name string
		keep time.Duration
	}{{"safety", r.Safety}, {"feedback", r.Feedback}} {
		if s.keep < 0 || s.keep%time.Second != 0 {
			return fmt.Errorf("%s: %s is not a whole number of seconds", s.name, s.keep)
		}
	}
	return nil
}

// Term is how long NOOPs of some reasons are kept.
type Term struct {
	Reasons []events.Reason
	Keep    time.Duration // more than 0
}

// Terms are those that are not for ever.
func (r Retention) Terms() (terms []Term) {
	if r.Safety > 0 {
		terms = append(terms, Term{[]events.Reason{events.ReasonSafety, events.ReasonSensitive}, r.Safety})
	}
	if r.Feedback > 0 {
		terms = append(terms, Term{[]events.Reason{events.ReasonRated}, r.Feedback})
	}
	return terms
}

// Expires reports whether the record of a delta is kept for a time only.
func (r Retention) Expires(d events.Delta) bool {
	return d.Kind() == events.DeltaNoop && slices.ContainsFunc(r.Terms(), func(t Term) bool {
		return slices.Contains(t.Reasons, d.Provenance().Reason)
	})
}
