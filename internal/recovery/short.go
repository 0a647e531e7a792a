package recovery

import (
	"errors"
	"fmt"

	"palimpsest/internal/pipeline"
)

// Position is how far a store, or a log, was filled from a stream.
type Position struct {
	Stream string
	Extent pipeline.Extent
	Holder string // the store or log: the memory store, the audit log
	Held   uint64 // sequence of the newest message that it has, 0 for none
}

// ShortError says that a stream lacks messages that a store has.
type ShortError struct{ Position }

func (e *ShortError) Error() string {
	what := fmt.Sprintf("%s ends at message %d", e.Stream, e.Extent.Last)
	if e.Extent.Last == 0 {
		what = e.Stream + " is empty"
	}
	return fmt.Sprintf("%s, but the %s has what stood there up to %d", what, e.Holder, e.Held)
}

// Intact returns a [*ShortError] for each stream that was lost or cut short: a
// store has messages from behind its end. Messages that a stream dropped because of
// their age, or its size, are not missing.
func Intact(positions ...Position) error {
	var errs []error
	for _, p := range positions {
		if p.Held > p.Extent.Last {
			errs = append(errs, &ShortError{p})
		}
	}
	return errors.Join(errs...)
}
