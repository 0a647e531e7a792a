package recovery

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"palimpsest/internal/audit"
	"palimpsest/internal/pipeline"
	"palimpsest/internal/store"
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

// Short compares the ends of EPISODES and AUDIT with what a memory store and the audit
// log, which may be nil, have. It returns a [*ShortError] for each stream that was lost or
// cut short: a store has messages from behind its end. Messages that a stream dropped
// because of their age, or its size, are not missing. An audit log that is away is left
// out, and logged.
func Short(ctx context.Context, in store.Store, kept audit.Log, episodes, effects *pipeline.Replay, log *slog.Logger) (short, err error) {
	// The stores come first: other processes may fill streams and stores meanwhile, and
	// what a store has then is no later than the end of its stream.
	var said, committed []Position
	if held, ok := in.(interface {
		Newest(ctx context.Context) (episode, effect uint64, err error)
	}); ok {
		episode, effect, err := held.Newest(ctx)
		if err != nil {
			return nil, fmt.Errorf("compare the memory store with the streams: %w", err)
		}
		said = append(said, Position{Stream: "EPISODES", Holder: "memory store", Held: episode})
		committed = append(committed, Position{Stream: "AUDIT", Holder: "memory store", Held: effect})
	}
	if kept != nil {
		last, err := kept.LastSequence(ctx)
		if err != nil {
			log.Warn("find the end of the audit log", "error", err)
		}
		committed = append(committed, Position{Stream: "AUDIT", Holder: "audit log", Held: last})
	}
	for _, of := range []struct {
		stream    *pipeline.Replay
		positions []Position
	}{{episodes, said}, {effects, committed}} {
		extent, err := of.stream.Extent(ctx)
		if err != nil {
			return nil, err
		}
		for i := range of.positions {
			of.positions[i].Extent = extent
		}
	}
	return intact(append(said, committed...)), nil
}

func intact(positions []Position) error {
	var errs []error
	for _, p := range positions {
		if p.Held > p.Extent.Last {
			errs = append(errs, &ShortError{p})
		}
	}
	return errors.Join(errs...)
}
