package broker

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sort"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"palimpsest/internal/audit"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

var _ audit.Stream = (*Journal)(nil)

// Follow implements [audit.Stream].
func (j *Journal) Follow(ctx context.Context, sel scope.Selector, after uint64) effects {
	if err := sel.Validate(); err != nil {
		return failed(err)
	}
	return func(yield func(events.Event[events.EffectCommitted], error) bool) {
		r := reader{journal: j, filter: auditFilter(sel), at: after, end: math.MaxUint64, yield: yield, endless: true, watch: &watch{}}
		if err := r.stream(ctx); !errors.Is(err, errStopped) {
			yield(events.Event[events.EffectCommitted]{}, fmt.Errorf("follow journal behind %d: %w", r.at, err))
		}
	}
}

// Since implements [audit.Stream] by halving what AUDIT holds.
func (j *Journal) Since(ctx context.Context, at time.Time) (uint64, error) {
	after, err := j.since(ctx, at)
	if err != nil {
		return 0, fmt.Errorf("read journal since %s: %w", at.Format(time.RFC3339), err)
	}
	return after, nil
}

func (j *Journal) since(ctx context.Context, at time.Time) (uint64, error) {
	stream, err := j.bind(ctx)
	if err != nil {
		return 0, err
	}
	info, err := stream.Info(ctx)
	if err != nil {
		return 0, err
	}
	first, n := info.State.FirstSeq, info.State.LastSeq+1-info.State.FirstSeq
	var failed error
	found := sort.Search(int(n), func(i int) bool {
		if failed != nil {
			return true
		}
		msg, err := stream.GetMsg(ctx, first+uint64(i), jetstream.WithGetMsgSubject(allEffects))
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			return true
		}
		failed = err
		return err != nil || !msg.Time.Before(at)
	})
	return max(first+uint64(found), 1) - 1, failed
}
