package chaos

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"palimpsest/internal/broker"
)

// TakeOver is what became of a partition whose reader was killed.
type TakeOver struct {
	// Kill is the place of the kill among all, from 0.
	Kill     int    `json:"kill"`
	Consumer string `json:"consumer"`
	// Alone: no other reader was ready, so that the partition waited for a start.
	Alone bool `json:"alone,omitempty"`
	// PinnedMS is after how many milliseconds another reader had it, MovedMS after
	// how many the oldest of it was done, or nothing waited in it. 0 is never: a
	// reader was killed again before, or [takeOverLimit] had passed.
	PinnedMS int64 `json:"pinned_ms"`
	MovedMS  int64 `json:"moved_ms"`
	// Never: the limit had passed.
	Never bool `json:"never,omitempty"`
}

const (
	// takeOverLook is how often a partition is looked at after a kill.
	takeOverLook = 100 * time.Millisecond
	// takeOverLimit is how long it is looked at.
	takeOverLimit = 30 * time.Second
	// afterlife is how long the broker may work on what a process said before it
	// died. No pin moves so soon: each is good for 3 s, and renewed each second.
	afterlife = time.Second
)

// String says how it went.
func (t TakeOver) String() string {
	text := fmt.Sprintf("after kill %d another reader had it in %d ms, and was done with the oldest in %d ms", t.Kill+1, t.PinnedMS, t.MovedMS)
	if t.Never {
		text += fmt.Sprintf("; nobody was within %v", takeOverLimit)
	}
	return text
}

// late reports whether the partition had to wait longer than that for a reader
// that was there. When that one is done with what comes back to it is a matter of
// the engines and the machine too.
func (t TakeOver) late(limit time.Duration) bool {
	return t.Never || !t.Alone && t.PinnedMS > limit.Milliseconds()
}

// takeOvers follows all partitions when a reader is killed. Nobody tells which
// it had: they are those whose pin another one gets. Where a second reader is
// killed meanwhile, all begins anew.
type takeOvers struct {
	js jetstream.JetStream

	mu     sync.Mutex
	again  context.CancelFunc // ends what the last kill began
	ended  []TakeOver
	follow sync.WaitGroup
}

func newTakeOvers(js jetstream.JetStream) *takeOvers {
	return &takeOvers{js: js, again: func() {}}
}

// killed follows the partitions after a kill of a reader at the instant.
func (t *takeOvers) killed(ctx context.Context, kill int, alone bool, at time.Time) {
	t.mu.Lock()
	t.again()
	ctx, t.again = context.WithCancel(ctx)
	t.mu.Unlock()
	for _, stream := range broker.Topology(broker.TopologyConfig{}).Streams {
		for _, c := range stream.Consumers {
			if c.PriorityPolicy != jetstream.PriorityPolicyPinned {
				continue
			}
			t.follow.Go(func() {
				p := partition{js: t.js, stream: stream.Config.Name, consumer: c.Durable, ttl: c.PinnedTTL, at: at}
				came, ok := p.watch(ctx)
				if !ok {
					return
				}
				came.Kill, came.Consumer, came.Alone = kill, c.Durable, alone
				t.mu.Lock()
				defer t.mu.Unlock()
				t.ended = append(t.ended, came)
			})
		}
	}
}

// all waits for what is under way, and returns the take-overs in the order of the
// kills.
func (t *takeOvers) all() []TakeOver {
	t.follow.Wait()
	t.again()
	slices.SortFunc(t.ended, func(a, b TakeOver) int {
		return cmp.Or(cmp.Compare(a.Kill, b.Kill), cmp.Compare(a.Consumer, b.Consumer))
	})
	return t.ended
}

// partition is a consumer after a kill.
type partition struct {
	js               jetstream.JetStream
	stream, consumer string
	ttl              time.Duration // of its pin
	at               time.Time     // of the kill

	seen bool
	// pin and floor are as they were right after the kill: who had it, and up to
	// where it was done.
	pin   string
	floor uint64
	// waited: something was to be done.
	waited bool
	came   TakeOver
}

// watch looks at a partition until it is clear what became of it. It reports
// false for one that a living process had all the time, or nobody needed.
func (p *partition) watch(ctx context.Context) (came TakeOver, ok bool) {
	ticker := time.NewTicker(takeOverLook)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return p.came, p.came.PinnedMS > 0
		case <-ticker.C:
		}
		took := time.Since(p.at)
		if took > takeOverLimit {
			p.came.Never = true
			return p.came, p.waited
		}
		c, err := p.js.Consumer(ctx, p.stream, p.consumer)
		if err != nil {
			continue // asked again
		}
		if over, ok := p.look(c.CachedInfo(), time.Since(p.at)); over {
			return p.came, ok
		}
	}
}

// look judges what the broker says of the partition, so long after the kill.
func (p *partition) look(info *jetstream.ConsumerInfo, took time.Duration) (over, ok bool) {
	pin, floor := "", info.AckFloor.Consumer
	for _, g := range info.PriorityGroups {
		pin = g.PinnedClientID
	}
	waits := info.NumPending > 0 || info.NumAckPending > 0
	p.waited = p.waited || waits
	switch {
	case !p.seen || took < afterlife && pin == p.pin:
		p.seen, p.pin, p.floor = true, pin, floor
	case pin == "":
	case pin == p.pin:
		// Its reader lives if it works, or has outlived what a dead one's pin does.
		alive := floor > p.floor || took > p.ttl+afterlife
		return alive, false
	default:
		if p.came.PinnedMS == 0 {
			p.came.PinnedMS, p.floor = took.Milliseconds(), floor
		}
		if floor > p.floor || !waits {
			p.came.MovedMS = took.Milliseconds()
			return true, true
		}
	}
	return false, false
}
