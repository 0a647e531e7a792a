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
	const another = "one more is killed"
	const ms, sec = time.Millisecond, time.Second
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
		"another reader's": {[]sight{{50 * ms, "a", 7, 3}, {1100 * ms, "a", 8, 3}}, true, false, TakeOver{}},
		"another reader's, slow": {
			[]sight{{50 * ms, "a", 7, 3}, {4100 * ms, "a", 7, 3}, {29 * sec, "a", 7, 3}, {29100 * ms, "a", 8, 2}}, true, false, TakeOver{},
		},
		"another reader's, slow beside kills": {
			[]sight{{50 * ms, "a", 7, 3}, {4 * sec, "a", 7, 3}, {after: 6 * sec, pin: another}, {9 * sec, "a", 8, 3}}, true, false, TakeOver{},
		},
		"another reader's, at rest": {[]sight{{50 * ms, "a", 7, 0}, {4100 * ms, "a", 7, 0}}, false, false, TakeOver{}},
		"another reader's, at rest to the end": {
			[]sight{{50 * ms, "a", 7, 0}, {29 * sec, "a", 7, 0}, {30100 * ms, "a", 7, 0}}, true, false, TakeOver{},
		},
		"another reader's, spoken to at last": {
			[]sight{{50 * ms, "a", 7, 0}, {29 * sec, "a", 7, 0}, {30100 * ms, "a", 7, 1}}, false, false, TakeOver{},
		},
		"a pin that never expires":  {[]sight{{50 * ms, "a", 7, 3}, {30100 * ms, "a", 7, 9}}, true, true, TakeOver{Never: true}},
		"and nobody needs at first": {[]sight{{50 * ms, "a", 7, 0}, {10 * sec, "a", 7, 0}, {41 * sec, "a", 7, 9}}, true, true, TakeOver{Never: true}},
		"and more are killed": {
			[]sight{{50 * ms, "a", 7, 3}, {after: 6 * sec, pin: another}, {30100 * ms, "a", 7, 9}}, true, true, TakeOver{Never: true},
		},
		"a pin that expires late": {
			[]sight{{50 * ms, "a", 7, 3}, {12 * sec, "a", 7, 3}, {13 * sec, "b", 7, 3}, {14 * sec, "b", 8, 3}}, true, true,
			TakeOver{PinnedMS: 13000, MovedMS: 14000},
		},
		"one of two killed": {
			[]sight{{50 * ms, "a", 7, 3}, {2 * sec, "a", 7, 3}, {after: 2050 * ms, pin: another}, {6 * sec, "b", 7, 3}}, true, false, TakeOver{},
		},
		"the heir is killed": {
			[]sight{
				{50 * ms, "a", 7, 3}, {2600 * ms, "b", 7, 3}, {after: 3 * sec, pin: another}, {3100 * ms, "b", 7, 3}, {5700 * ms, "c", 7, 3},
			}, true, true, TakeOver{PinnedMS: 2600, CutMS: 5700},
		},
		"the heir never begins": {
			[]sight{{50 * ms, "a", 7, 3}, {2600 * ms, "b", 7, 3}, {after: 3 * sec, pin: another}, {30100 * ms, "b", 7, 3}}, true, true,
			TakeOver{PinnedMS: 2600, Never: true},
		},
		"the heir loses it": {
			[]sight{{50 * ms, "a", 7, 3}, {2600 * ms, "b", 7, 3}, {6 * sec, "", 7, 3}, {7 * sec, "c", 7, 3}, {8 * sec, "c", 8, 3}}, true, true,
			TakeOver{PinnedMS: 2600, MovedMS: 8000},
		},
		"nobody's when another is killed": {
			[]sight{{50 * ms, "a", 7, 3}, {3 * sec, "", 7, 3}, {after: 6 * sec, pin: another}}, true, true, TakeOver{CutMS: 6000},
		},
		"nobody's, and nobody needs it": {
			[]sight{{50 * ms, "a", 7, 0}, {3 * sec, "", 7, 0}, {after: 6 * sec, pin: another}}, true, false, TakeOver{},
		},
		"nobody needs it for long": {
			[]sight{{50 * ms, "a", 7, 0}, {9900 * ms, "", 7, 0}, {10 * sec, "b", 7, 1}, {10100 * ms, "b", 8, 0}}, true, true,
			TakeOver{PinnedMS: 100, MovedMS: 200},
		},
		"nobody's": {[]sight{{50 * ms, "", 7, 3}, {5 * time.Second, "", 7, 3}}, false, false, TakeOver{}},
		"nobody's before": {
			[]sight{{50 * ms, "", 7, 3}, {800 * ms, "b", 7, 3}, {900 * ms, "b", 8, 3}}, true, true, TakeOver{PinnedMS: 800, MovedMS: 900},
		},
	} {
		p := partition{ttl: 3 * time.Second}
		var over, ok bool
		for _, s := range tc.sights {
			if over {
				t.Errorf("%s: over before %v", name, s.after)
			}
			if s.pin == another {
				over, ok = p.crowd(s.after)
				continue
			}
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
		"nobody, then a kill":  {TakeOver{CutMS: 5001}, true},
		"nobody, a kill soon":  {TakeOver{CutMS: 3001}, false},
		"the heir is killed":   {TakeOver{PinnedMS: 2600, CutMS: 5700}, false},
		"nobody at a start":    {TakeOver{CutMS: 5001, Alone: true}, false},
	} {
		if got := tc.came.late(5 * time.Second); got != tc.late {
			t.Errorf("%s: %v", name, got)
		}
	}
}
