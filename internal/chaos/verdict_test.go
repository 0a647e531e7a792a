package chaos

import (
	"testing"
	"time"
)

// TestTakeOversThatNobodySaw: no partition is late where none was taken over, so
// that a run which killed enough readers must have seen one that was.
func TestTakeOversThatNobodySaw(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		heirs, others int // kills of readers that others were ready for, and all other kills
		came          []TakeOver
		seen          int
		late, silent  int
	}{
		"nobody killed":   {},
		"few killed":      {heirs: 7, others: 50},
		"many killed":     {heirs: 8, silent: 1},
		"only starts":     {heirs: 8, came: []TakeOver{{PinnedMS: 6000, MovedMS: 7000, Alone: true}}, silent: 1},
		"none to the end": {heirs: 8, came: []TakeOver{{CutMS: 1000}}, silent: 1},
		"one seen":        {heirs: 8, came: []TakeOver{{CutMS: 1000}, {PinnedMS: 2600, MovedMS: 4000}}, seen: 1},
		"killed again":    {heirs: 8, came: []TakeOver{{PinnedMS: 2600, CutMS: 4000}}, seen: 1},
		"late":            {heirs: 1, came: []TakeOver{{PinnedMS: 5001, CutMS: 9000}, {Never: true}}, seen: 1, late: 2},
	} {
		j := &judge{record: Record{TakeOver: 5 * time.Second}}
		j.record.Run = Figures{Kills: make([]Killed, tc.heirs+tc.others), TakeOvers: tc.came}
		for n := range tc.heirs {
			j.record.Run.Kills[n].Heirs = true
		}
		j.takeOvers()
		v := j.verdict
		if v.Checked.TakeOvers != tc.seen || v.Late != tc.late || v.Unmeasured != tc.silent || len(v.Findings) != tc.late+tc.silent {
			t.Errorf("%s: %+v", name, v)
		}
		v.Compare(Digests{Live: "a", Rebuilt: "a"}, nil)
		if v.OK != (tc.late+tc.silent == 0) {
			t.Errorf("%s: OK %v", name, v.OK)
		}
	}
}
