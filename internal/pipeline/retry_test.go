package pipeline

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

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
