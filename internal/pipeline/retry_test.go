package pipeline

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"palimpsest/pkg/events"
)

// A handler whose work was cut short must be able to tell, also where the
// message never went back to the broker.
func TestRetryInPlaceCountsAsDelivery(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.standard()
	var mu sync.Mutex
	var seen []int
	_, stop := b.start(quickConfig(), onEpisode(func(_ context.Context, in episode) ([]events.Payload, error) {
		mu.Lock()
		defer mu.Unlock()
		if seen = append(seen, in.Delivery); len(seen) < 3 {
			return nil, errors.New("not yet")
		}
		return nil, nil
	}))
	b.say(user("ann"), "hello")
	b.settled("EPISODES", "episodes")
	stop()
	if !slices.Equal(seen, []int{1, 2, 3}) {
		t.Errorf("deliveries %v, want 1, 2, 3", seen)
	}
}

// TestPostponedMessageIsNoFailure: it comes again as often as it is postponed,
// more often than a message may fail, and meanwhile others are handled.
func TestPostponedMessageIsNoFailure(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.standard()
	cfg := quickConfig()
	cfg.MaxDeliveries = 3
	var mu sync.Mutex
	seen := map[string]int{}
	_, stop := b.start(cfg, onEpisode(func(_ context.Context, in episode) ([]events.Payload, error) {
		mu.Lock()
		defer mu.Unlock()
		if seen[in.ID]++; in.ID == "later" && seen[in.ID] <= 2*cfg.MaxDeliveries {
			return nil, Later(time.Millisecond, errors.New("not yet"))
		}
		return nil, nil
	}))
	b.say(user("ann"), "later")
	b.say(user("ann"), "hello")
	b.settled("EPISODES", "episodes")
	stop()
	if seen["later"] != 2*cfg.MaxDeliveries+1 || seen["hello"] != 1 {
		t.Errorf("handled %v", seen)
	}
	if n := b.lettersHeld(); n != 0 {
		t.Errorf("%d dead letters", n)
	}
}
