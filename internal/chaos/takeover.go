package chaos

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"palimpsest/internal/topology"
)

// TakeOver is what became of a partition whose reader was killed.
type TakeOver struct {
	// Kill is the place of the kill among all, from 0.
	Kill     int    `json:"kill"`
	Consumer string `json:"consumer"`
	// Alone: no other reader was ready, so that the partition waited for a start.
	Alone bool `json:"alone,omitempty"`
	// PinnedMS is after how many milliseconds another reader had it, MovedMS after
	// how many the oldest of it was done, or nothing waited in it. They count from
	// the kill, or from when something came to wait, and are 0 where that was not
	// seen.
	PinnedMS int64 `json:"pinned_ms"`
	MovedMS  int64 `json:"moved_ms"`
	// CutMS is after how many another reader was killed, or the run ended, before
	// more was seen; 0 where neither was.
	CutMS int64 `json:"cut_ms,omitempty"`
	// Never: [takeOverLimit] had passed.
	Never bool `json:"never,omitempty"`
}

const (
	// takeOverLook is how often a partition is looked at after a kill.
	takeOverLook = 100 * time.Millisecond
	// takeOverLimit is how long something may wait in it until nobody is taken to
	// work on it.
	takeOverLimit = 30 * time.Second
	// afterlife is how long the broker may work on what a process said before it
	// died. No pin moves so soon: each is good for 3 s, and renewed each second.
	afterlife = time.Second
)

// String says how it went.
func (t TakeOver) String() string {
	text := fmt.Sprintf("after kill %d ", t.Kill+1)
	if t.PinnedMS > 0 {
		text += fmt.Sprintf("another reader had it in %d ms", t.PinnedMS)
	} else {
		text += "no other reader was seen to have it"
	}
	switch {
	case t.MovedMS > 0:
		text += fmt.Sprintf(", and was done with the oldest in %d ms", t.MovedMS)
	case t.Never:
		text += fmt.Sprintf(", and nobody worked on it within %v", takeOverLimit)
	case t.CutMS > 0:
		text += fmt.Sprintf(", moved: not seen in %d ms, until the next kill or the end", t.CutMS)
	}
	return text
}

// late reports whether the partition had to wait longer than that for a reader
// that was there. When that one is done with what comes back to it is a matter of
// the engines and the machine too.
func (t TakeOver) late(limit time.Duration) bool {
	waited := t.PinnedMS
	if waited == 0 {
		waited = t.CutMS
	}
	return t.Never || !t.Alone && waited > limit.Milliseconds()
}

// measured reports whether it says how soon a reader that was there took over.
func (t TakeOver) measured() bool { return !t.Alone && t.PinnedMS > 0 }

// takeOvers follows all partitions when a reader is killed. Nobody tells which
// it had: they are those whose pin another one gets. Where a second reader is
// killed meanwhile, all begins anew, and what is half seen is watched to its end.
type takeOvers struct {
	js jetstream.JetStream

	mu     sync.Mutex
	again  context.CancelFunc // says that one more was killed
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
	alive, again := context.WithCancel(ctx)
	t.again = again
	t.mu.Unlock()
	for _, stream := range topology.Declare(topology.Config{}).Streams {
		for _, c := range stream.Consumers {
			if c.PriorityPolicy != jetstream.PriorityPolicyPinned {
				continue
			}
			t.follow.Go(func() {
				p := partition{js: t.js, stream: stream.Config.Name, consumer: c.Durable, ttl: c.PinnedTTL, at: at}
				came, ok := p.watch(ctx, alive.Done())
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
	// idle is how long after the kill nothing waited in it for the last time, as
	// far as its reader may be dead; 0 where something always did.
	idle time.Duration
	// now and waits are what was seen last: who has it, and that something waits.
	now   string
	waits bool
	// heir is who took it over.
	heir string
	// crowded: one more reader was killed since.
	crowded bool
	came    TakeOver
}

// watch looks at a partition until it is clear what became of it. It reports
// false for one that a living process had all the time, or nobody needed.
func (p *partition) watch(ctx context.Context, again <-chan struct{}) (came TakeOver, ok bool) {
	ticker := time.NewTicker(takeOverLook)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return p.came, p.cut(time.Since(p.at))
		case <-again:
			again = nil
			if over, ok := p.crowd(time.Since(p.at)); over {
				return p.came, ok
			}
			continue
		case <-ticker.C:
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
	p.now, p.waits = "", info.NumPending > 0 || info.NumAckPending > 0
	for _, g := range info.PriorityGroups {
		p.now = g.PinnedClientID
	}
	floor := info.AckFloor.Consumer
	switch {
	case !p.seen || took < afterlife && p.now == p.pin:
		p.seen, p.pin, p.floor = true, p.now, floor
	case p.heir != "":
		if over := p.inherited(floor, took); over {
			return true, true
		}
	case p.now != "" && p.now == p.pin && floor > p.floor:
		return true, false // its reader lives
	case p.now != p.pin && p.crowded:
		return true, false // the reader killed last may have had it
	case p.now != "" && p.now != p.pin:
		p.came.PinnedMS, p.heir, p.floor = p.waited(took), p.now, floor
		if over := p.inherited(floor, took); over {
			return true, true
		}
	}
	return p.expire(took)
}

// inherited reports whether it is clear how far the heir came.
func (p *partition) inherited(floor uint64, took time.Duration) (over bool) {
	switch {
	case floor > p.floor || !p.waits:
		p.came.MovedMS = p.waited(took)
		return true
	case p.now != p.heir && p.crowded:
		return p.cut(took) // the heir was killed too
	case p.now != "":
		p.heir = p.now
	}
	return false
}

// expire gives up where the limit has passed. A pin that stays is no sign of life:
// whoever has it works, or nothing waits.
func (p *partition) expire(took time.Duration) (over, ok bool) {
	if p.heir == "" && !p.waits {
		p.idle = took
		return took > takeOverLimit, false
	}
	p.came.Never = took-p.idle > takeOverLimit
	return p.came.Never, p.came.Never
}

// crowd notes that one more reader was killed: only who has the partition is
// watched on, for the next one may have been about to get it.
func (p *partition) crowd(took time.Duration) (over, ok bool) {
	p.crowded = true
	if p.heir != "" || p.now != "" && p.waits {
		return false, false
	}
	return true, p.cut(took)
}

// cut ends the look before all was seen. It reports false where nobody was known
// to be missing.
func (p *partition) cut(took time.Duration) (ok bool) {
	if p.heir == "" && (p.now != "" || !p.waits) {
		return false
	}
	p.came.CutMS = p.waited(took)
	return true
}

// waited is for how many milliseconds something waits; 0 would say that it was
// not seen.
func (p *partition) waited(took time.Duration) int64 {
	return max(1, (took - p.idle).Milliseconds())
}
