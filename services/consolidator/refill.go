package consolidator

import (
	"context"
	"fmt"
	"sync"
	"time"

	"palimpsest/internal/audit"
	"palimpsest/internal/pipeline"
	"palimpsest/pkg/events"
)

// LogEnd tells how far the audit log goes.
type LogEnd interface {
	// LastSequence is the highest stream sequence written, 0 for none.
	LastSequence(ctx context.Context) (uint64, error)
}

const (
	// endInterval is how often the end of the audit log is looked at while
	// nothing is written. Between two looks lies at least endRest times what the
	// last one took: the larger a log, the longer it takes.
	endInterval = 10 * time.Second
	endRest     = 100
)

// end is what was seen of the end of the audit log.
type end struct {
	mu   sync.Mutex
	seen uint64 // the highest sequence that this process wrote or found
	due  time.Time
	// whole is up to where the log was filled once more, and left where it ended
	// then: what lies between, it refuses.
	whole, left uint64
}

// refill copies into the audit log what it had and lost: it was restored from an
// older copy while it was written to, or a replica took over that lagged. What
// any process wrote and acknowledged, it must have. A loss shows only until
// something newer is written, so it is looked for before; one that is over within
// the pause between two looks is not seen.
func (s *Service) refill(ctx context.Context) error {
	if s.deps.End == nil || s.deps.Tail == nil {
		return nil
	}
	s.end.mu.Lock()
	defer s.end.mu.Unlock()
	began := time.Now()
	if began.Before(s.end.due) {
		return nil
	}
	had, last, err := s.compareEnds(ctx)
	if err != nil {
		return err
	}
	pause := endRest * time.Since(began)
	if last < had && (last != s.end.left || had > s.end.whole) {
		if err := s.copyBehind(ctx, last, had); err != nil {
			return err
		}
	}
	s.end.seen, s.end.due = max(s.end.seen, last), time.Now().Add(pause)
	return nil
}

// compareEnds returns how far the audit log went, and how far it goes. They are
// asked in this order: what is acknowledged is written before.
func (s *Service) compareEnds(ctx context.Context) (had, last uint64, err error) {
	had = s.end.seen
	if s.deps.Acknowledged != nil {
		acknowledged, err := s.deps.Acknowledged(ctx, logConsumer)
		if err != nil {
			return 0, 0, fmt.Errorf("look how far the audit log was written: %w", err)
		}
		had = max(had, acknowledged)
	}
	if last, err = s.deps.End.LastSequence(ctx); err != nil {
		return 0, 0, fmt.Errorf("look for the end of the audit log: %w", err)
	}
	return had, last, nil
}

func (s *Service) copyBehind(ctx context.Context, last, had uint64) error {
	copied, err := s.CatchUp(ctx, s.deps.Tail, last)
	if err != nil && !pipeline.IsReject(err) {
		return err
	}
	s.deps.Logger.WarnContext(ctx, "the audit log lost what it had", "from", last, "to", had, "copied", copied, "error", err)
	if last, err = s.deps.End.LastSequence(ctx); err != nil {
		return fmt.Errorf("look for the end of the audit log: %w", err)
	}
	s.end.whole, s.end.left = had, last
	return nil
}

// wrote notes that the log has these.
func (s *Service) wrote(effects []events.Event[events.EffectCommitted]) {
	s.end.mu.Lock()
	defer s.end.mu.Unlock()
	for _, e := range effects {
		s.end.seen = max(s.end.seen, e.Sequence)
	}
}

// unwritten has the end looked at before the next write: what the log did not
// take, another server may be asked to take that has less.
func (s *Service) unwritten() {
	s.end.mu.Lock()
	defer s.end.mu.Unlock()
	s.end.due = time.Time{}
}

// watchEnd refills while nothing is written.
func (s *Service) watchEnd(ctx context.Context, _ time.Time) ([]events.Payload, error) {
	return nil, s.refill(ctx)
}

var _ LogEnd = audit.Log(nil)
