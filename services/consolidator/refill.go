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

// end is the highest sequence that the audit log was seen to have.
type end struct {
	mu   sync.Mutex
	seen uint64
	due  time.Time
}

// refill copies into the audit log what it had and lost: it was restored from an
// older copy while it was written to. That shows only until something newer is
// written, so it is looked at before. One that is over within the pause between
// two looks is not seen. A hole stays where whoever fills it dies in the midst of
// it while another, who saw nothing of what was lost, writes on.
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
	last, err := s.deps.End.LastSequence(ctx)
	if err != nil {
		return fmt.Errorf("look for the end of the audit log: %w", err)
	}
	s.end.due = began.Add(endRest * time.Since(began))
	if last < s.end.seen {
		copied, err := s.CatchUp(ctx, s.deps.Tail, last)
		if err != nil && !pipeline.IsReject(err) {
			return err
		}
		s.deps.Logger.WarnContext(ctx, "the audit log lost what it had", "from", last, "to", s.end.seen, "copied", copied, "error", err)
	}
	s.end.seen = last // or what was copied, with the next look
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

// watchEnd refills while nothing is written.
func (s *Service) watchEnd(ctx context.Context, _ time.Time) ([]events.Payload, error) {
	return nil, s.refill(ctx)
}

var _ LogEnd = audit.Log(nil)
