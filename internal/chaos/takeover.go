package chaos

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"regexp"
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
	// PinnedMS is after how many milliseconds another reader had it, MovedMS after
	// how many something of it was worked on, or nothing waited in it; 0 where that
	// did not come about, because that reader was killed too, or within
	// [takeOverLimit].
	PinnedMS int64 `json:"pinned_ms"`
	MovedMS  int64 `json:"moved_ms"`
	// Gone says why it was followed no further, empty where it moved.
	Gone string `json:"gone,omitempty"`
}

const (
	// takeOverLook is how often a partition without a reader is looked at.
	takeOverLook = 50 * time.Millisecond
	// takeOverLimit is how long it is followed.
	takeOverLimit = 30 * time.Second
	// pinsLimit bounds the question that comes before a kill.
	pinsLimit = time.Second
	// afterlife is how long the broker may work on what a process said before it
	// died.
	afterlife = time.Second
)

// The ends of a partition's take-over that are no take-over.
const (
	goneAgain   = "its next reader was killed too"
	goneNever   = "nobody worked on it"
	goneUnasked = "the run ended"
)

// String says how it went.
func (t TakeOver) String() string {
	text := fmt.Sprintf("after kill %d another reader had it in %d ms, and worked on it in %d ms", t.Kill+1, t.PinnedMS, t.MovedMS)
	if t.Gone != "" {
		text += "; " + t.Gone
	}
	return text
}

// late reports whether the partition had to wait longer than that.
func (t TakeOver) late(limit time.Duration) bool {
	switch t.Gone {
	case goneNever:
		return true
	case "":
		return t.MovedMS > limit.Milliseconds()
	}
	return t.PinnedMS > limit.Milliseconds()
}

// takeOvers follows the partitions of killed readers until they are read again.
type takeOvers struct {
	js jetstream.JetStream

	mu     sync.Mutex
	open   map[string]context.CancelFunc // by consumer: those under way
	ended  []TakeOver
	follow sync.WaitGroup
}

func newTakeOvers(js jetstream.JetStream) *takeOvers {
	return &takeOvers{js: js, open: map[string]context.CancelFunc{}}
}

// partition is a consumer as it was when its reader was killed.
type partition struct{ consumer, pin string }

// held lists the partitions that a process reads, by its own word: the broker
// tells of nobody whose pin is whose. A process that does not answer has not begun
// to read.
func (t *takeOvers) held(ctx context.Context, l *process) (held []partition) {
	if !l.of.Pins || !l.isReady() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, pinsLimit)
	defer cancel()
	names, err := pinned(ctx, l.http)
	if err != nil {
		return nil
	}
	for _, name := range names {
		if info, err := t.info(ctx, name); err == nil && pinOf(info) != "" {
			held = append(held, partition{name, pinOf(info)})
		}
	}
	return held
}

var pinnedLine = regexp.MustCompile(`(?m)^palimpsest_stage_pinned\{.*stage="([^"]+)".*\} 1$`)

// pinned asks a process for the stages whose consumers it alone reads; they have
// the consumers' names.
func pinned(ctx context.Context, address string) (stages []string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address+"/metrics", http.NoBody)
	if err != nil {
		return nil, err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, fmt.Errorf("ask for metrics: %w", err)
	}
	defer res.Body.Close() //nolint:errcheck // it was only read
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, fmt.Errorf("ask for metrics: %w", err)
	}
	for _, m := range pinnedLine.FindAllSubmatch(text, -1) {
		stages = append(stages, string(m[1]))
	}
	return stages, nil
}

func (t *takeOvers) info(ctx context.Context, consumer string) (*jetstream.ConsumerInfo, error) {
	c, err := t.js.Consumer(ctx, broker.StreamEpisodes, consumer)
	if err != nil {
		return nil, err
	}
	return c.CachedInfo(), nil
}

func pinOf(info *jetstream.ConsumerInfo) string {
	for _, g := range info.PriorityGroups {
		return g.PinnedClientID
	}
	return ""
}

// killed follows what the process held that was killed at the instant.
func (t *takeOvers) killed(ctx context.Context, kill int, at time.Time, held []partition) {
	for _, p := range held {
		t.mu.Lock()
		if again := t.open[p.consumer]; again != nil {
			again()
		}
		following, cancel := context.WithCancel(ctx)
		t.open[p.consumer] = cancel
		t.mu.Unlock()
		t.follow.Go(func() {
			defer cancel()
			if came, ok := t.watch(following, p, at); ok {
				came.Kill, came.Consumer = kill, p.consumer
				if came.Gone == goneAgain && ctx.Err() != nil {
					came.Gone = goneUnasked
				}
				t.mu.Lock()
				t.ended = append(t.ended, came)
				t.mu.Unlock()
			}
		})
	}
}

// watch looks at a partition until it moves. It reports false for one that the
// dead process did not read any more, or in which nothing waited for anybody.
func (t *takeOvers) watch(ctx context.Context, p partition, at time.Time) (came TakeOver, ok bool) {
	ticker := time.NewTicker(takeOverLook)
	defer ticker.Stop()
	var floor, quiet uint64 // acknowledged: as the next reader began, and after the dead one's last word
	waited := false
	for {
		select {
		case <-ctx.Done():
			came.Gone = goneAgain
			return came, true
		case <-ticker.C:
		}
		info, err := t.info(ctx, p.consumer)
		took := time.Since(at)
		if took > takeOverLimit {
			came.Gone = goneNever
			return came, waited
		}
		if err != nil {
			continue // asked again
		}
		pin, acked, waits := pinOf(info), info.AckFloor.Consumer, info.NumPending > 0 || info.NumAckPending > 0
		waited = waited || waits
		switch {
		case pin == p.pin && took > afterlife:
			if quiet > 0 && acked+1 > quiet {
				return came, false // somebody else reads it, and did so before
			}
			quiet = acked + 1
		case pin == p.pin || pin == "":
		case came.PinnedMS == 0:
			came.PinnedMS, floor = took.Milliseconds(), acked
		}
		if came.PinnedMS > 0 && (acked > floor || !waits) {
			came.MovedMS = took.Milliseconds()
			return came, true
		}
	}
}

// all waits for what is under way, and returns the take-overs in the order of the
// kills.
func (t *takeOvers) all() []TakeOver {
	t.follow.Wait()
	slices.SortFunc(t.ended, func(a, b TakeOver) int {
		return cmp.Or(cmp.Compare(a.Kill, b.Kill), cmp.Compare(a.Consumer, b.Consumer))
	})
	return t.ended
}
