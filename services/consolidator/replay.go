package consolidator

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"palimpsest/internal/cursor"
	"palimpsest/internal/pipeline"
	"palimpsest/pkg/events"
)

// Projector is the name of the reader of AUDIT that applies effects.
const Projector = "consolidator-projector"

// Replay is AUDIT from end to end, see [pipeline.Replay].
type Replay interface {
	Read(ctx context.Context, after uint64, yield func([]*pipeline.Entry) error) (cursor.Cursor, error)
}

// Replay applies the effects behind a stream sequence that the store lacks, and
// then sets the cursor of the projector. A scope whose effects cannot be applied
// keeps none of the others from it; the error then names the first. A [*GapError]
// is returned if nothing else is wrong. The cursor is set all the same then: neither
// AUDIT nor the audit log has the missing effects.
func (s *Service) Replay(ctx context.Context, from Replay, after uint64) error {
	var failed, gap error
	end, err := from.Read(ctx, after, func(batch []*pipeline.Entry) error {
		if err := s.project(ctx, batch); err != nil {
			return err
		}
		for _, e := range batch {
			switch {
			case e.Err == nil:
			case errors.As(e.Err, new(*GapError)):
				gap = cmp.Or(gap, fmt.Errorf("apply effect %d: %w", e.Meta.Sequence, e.Err))
			case pipeline.IsRefused(e.Err):
				s.deps.Logger.Warn("skip a message that cannot be read", "stream", auditStream, "sequence", e.Meta.Sequence, "error", e.Err)
			default:
				failed = cmp.Or(failed, fmt.Errorf("apply effect %d: %w", e.Meta.Sequence, e.Err))
			}
		}
		return ctx.Err()
	})
	if err = cmp.Or(err, failed); err != nil {
		return err
	}
	if err := s.deps.Cursors.SetCursor(ctx, Projector, 0, end); err != nil {
		return err
	}
	return gap
}

// ApplyDropped applies effects that the audit log has and the store lacks, of scopes
// of which AUDIT dropped everything: their newest effect stood below sequence begin, so
// the projector meets none of them. It goes on with the next scope where the log has a
// gap, and then returns a [*GapError]. Last ordinals stay as they are. It returns how
// many effects were applied.
func (s *Service) ApplyDropped(ctx context.Context, begin uint64) (count int, err error) {
	logged, err := s.logged(ctx)
	if err != nil {
		return 0, err
	}
	var gap error
	for fact, sequence := range logged {
		if sequence >= begin {
			continue
		}
		state, err := s.deps.Applier.State(ctx, fact)
		if err != nil {
			return count, fmt.Errorf("read state: %w", err)
		}
		if state.AuditSeq >= sequence {
			continue
		}
		applied, err := s.fill(ctx, reached{fact: state.Revision}, fact, 0)
		count += len(applied)
		if errors.As(err, new(*GapError)) {
			gap = err
		} else if err != nil {
			return count, err
		}
	}
	return count, gap
}

// FillLog copies into the audit log what AUDIT holds, and then sets the cursor of
// its reader. It returns how many effects there were. What the log refuses keeps
// nothing else from it; the error then names the first.
func (s *Service) FillLog(ctx context.Context, from Replay) (count int, err error) {
	var refused error
	end, err := from.Read(ctx, 0, func(batch []*pipeline.Entry) error {
		if err := s.sink(ctx, batch); err != nil {
			return err
		}
		for _, e := range batch {
			switch {
			case e.Err != nil && !pipeline.IsRefused(e.Err):
				return e.Err
			case e.Err != nil:
				refused = cmp.Or(refused, fmt.Errorf("log effect %d: %w", e.Meta.Sequence, e.Err))
			case e.Meta.Kind == events.KindEffectCommitted:
				count++
			}
		}
		return ctx.Err()
	})
	if err == nil {
		err = s.deps.LogCursors.SetCursor(ctx, logReader, 0, end)
	}
	return count, errors.Join(err, refused)
}

// Applied reports whether the store has the effect of a message; a message that is
// none decides nothing.
func (s *Service) Applied(ctx context.Context, e *pipeline.Entry) (has, decides bool, err error) {
	h, err := pipeline.DecodeEntry[head](e)
	if e.Err != nil || err != nil || e.Meta.Kind != events.KindEffectCommitted {
		return false, false, nil //nolint:nilerr // it was buried
	}
	state, err := s.deps.Applier.State(ctx, h.Data.Scope)
	return state.Revision >= h.Data.Revision, true, err
}

// Logged reports whether the audit log has the effect of a message.
func (s *Service) Logged(ctx context.Context, e *pipeline.Entry) (has, decides bool, err error) {
	h, err := pipeline.DecodeEntry[head](e)
	if e.Err != nil || err != nil || e.Meta.Kind != events.KindEffectCommitted || s.deps.Kept == nil {
		return false, false, nil
	}
	for kept, err := range s.deps.Kept.Effects(ctx, h.Data.Scope, h.Data.Revision-1) {
		return err == nil && kept.Data.Revision == h.Data.Revision, true, err
	}
	return false, true, nil
}
