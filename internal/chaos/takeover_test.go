package chaos

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go/jetstream"
)

// TestAPartitionThatIsTakenOver: it is measured from the kill until another reader
// is done with the oldest; one that a living reader had all the time is none.
func TestAPartitionThatIsTakenOver(t *testing.T) {
	t.Parallel()
	type sight struct {
		after         time.Duration
		pin           string
		floor, behind uint64
	}
	const ms = time.Millisecond
	for name, tc := range map[string]struct {
		sights []sight
		over   bool
		ok     bool
		came   TakeOver
	}{
		"taken over": {
			[]sight{{50 * ms, "a", 7, 3}, {2500 * ms, "", 7, 3}, {2600 * ms, "b", 7, 4}, {3900 * ms, "b", 8, 4}},
			true, true, TakeOver{PinnedMS: 2600, MovedMS: 3900},
		},
		"the dead one's last words": {
			[]sight{{50 * ms, "a", 7, 3}, {150 * ms, "a", 9, 3}, {1200 * ms, "a", 9, 3}, {2600 * ms, "b", 9, 4}, {2700 * ms, "b", 9, 4}},
			false, false, TakeOver{PinnedMS: 2600},
		},
		"nothing left to do": {
			[]sight{{50 * ms, "a", 7, 1}, {2600 * ms, "b", 7, 0}}, true, true, TakeOver{PinnedMS: 2600, MovedMS: 2600},
		},
		"another reader's":          {[]sight{{50 * ms, "a", 7, 3}, {1100 * ms, "a", 8, 3}}, true, false, TakeOver{}},
		"another reader's, at rest": {[]sight{{50 * ms, "a", 7, 0}, {4100 * ms, "a", 7, 0}}, true, false, TakeOver{}},
		"nobody's":                  {[]sight{{50 * ms, "", 7, 3}, {5 * time.Second, "", 7, 3}}, false, false, TakeOver{}},
		"nobody's before": {
			[]sight{{50 * ms, "", 7, 3}, {800 * ms, "b", 7, 3}, {900 * ms, "b", 8, 3}}, true, true, TakeOver{PinnedMS: 800, MovedMS: 900},
		},
	} {
		p := partition{ttl: 3 * time.Second}
		var over, ok bool
		for _, s := range tc.sights {
			info := &jetstream.ConsumerInfo{NumPending: s.behind, PriorityGroups: []jetstream.PriorityGroupState{{PinnedClientID: s.pin}}}
			info.AckFloor.Consumer = s.floor
			over, ok = p.look(info, s.after)
		}
		if over != tc.over || ok != tc.ok {
			t.Errorf("%s: over %v, ok %v", name, over, ok)
		}
		if diff := cmp.Diff(tc.came, p.came); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestLate: only a reader that was there can be late.
func TestLate(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		came TakeOver
		late bool
	}{
		"in time":              {TakeOver{PinnedMS: 2600, MovedMS: 4999}, false},
		"much to do":           {TakeOver{PinnedMS: 2600, MovedMS: 5001}, false},
		"late":                 {TakeOver{PinnedMS: 5001, MovedMS: 5600}, true},
		"late, and killed too": {TakeOver{PinnedMS: 5001}, true},
		"a start":              {TakeOver{PinnedMS: 6000, MovedMS: 8000, Alone: true}, false},
		"never":                {TakeOver{Never: true, Alone: true}, true},
	} {
		if got := tc.came.late(5 * time.Second); got != tc.late {
			t.Errorf("%s: %v", name, got)
		}
	}
}
