package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// ErrBacklog: more waits to be read from the stream than callers may add to. It
// passes.
var ErrBacklog = errors.New("pipeline: too much waits to be read")

// backlogFor is how long a look at the backlog is trusted: it costs one question
// to the server, and one more for each pinned consumer that is behind.
const backlogFor = time.Second

// Who cannot look within lookLimit lets callers in, and tries again after
// blindFor: a publisher may lack the permission to look.
const (
	lookLimit = time.Second
	blindFor  = time.Minute
)

// admission bounds what callers add to a stream whose pinned consumers are behind.
type admission struct {
	js   jetstream.JetStream
	now  func() time.Time
	most int           // messages that no consumer has settled
	age  time.Duration // of the oldest of them

	mu    sync.Mutex
	again time.Time // when to look again
	found error
}

// admit returns [ErrBacklog] if nothing more may be added to the stream that
// takes the subject. What cannot be looked up refuses nothing.
func (a *admission) admit(ctx context.Context, subject string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if now := time.Now(); !now.Before(a.again) {
		ctx, cancel := context.WithTimeout(ctx, lookLimit)
		defer cancel()
		found, err := a.look(ctx, subject)
		a.found, a.again = found, now.Add(backlogFor)
		if err != nil {
			a.again = now.Add(blindFor)
		}
	}
	return a.found
}

// look is whether there is a backlog, and what hindered finding out.
func (a *admission) look(ctx context.Context, subject string) (found, err error) {
	name, err := a.js.StreamNameBySubject(ctx, subject)
	if err != nil {
		return nil, err
	}
	stream, err := a.js.Stream(ctx, name)
	if err != nil {
		return nil, err
	}
	waiting, oldest := uint64(0), time.Time{}
	consumers := stream.ListConsumers(ctx)
	for info := range consumers.Info() {
		behind := info.NumPending + uint64(max(0, info.NumAckPending))
		if behind == 0 || !slices.Contains(info.Config.PriorityGroups, PinGroup) {
			continue
		}
		waiting += behind
		first, err := stream.GetMsg(ctx, info.AckFloor.Stream+1, jetstream.WithGetMsgSubject(info.Config.FilterSubject))
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			continue // settled meanwhile
		}
		if err != nil {
			return nil, err
		}
		if oldest.IsZero() || first.Time.Before(oldest) {
			oldest = first.Time
		}
	}
	if err := consumers.Err(); err != nil {
		return nil, err
	}
	if waiting >= uint64(a.most) {
		return fmt.Errorf("%w: %d messages", ErrBacklog, waiting), nil
	}
	if age := a.now().Sub(oldest); !oldest.IsZero() && age >= a.age {
		return fmt.Errorf("%w: the oldest message since %v", ErrBacklog, age.Round(time.Second)), nil
	}
	return nil, nil
}
