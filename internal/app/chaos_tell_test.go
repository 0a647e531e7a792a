package app

import (
	"strings"
	"testing"

	"palimpsest/internal/chaos"
)

// TestTakeOversAreTold: what was not seen is not told as good.
func TestTakeOversAreTold(t *testing.T) {
	t.Parallel()
	several := chaos.Size{Processes: 12}
	for name, tc := range map[string]struct {
		tried tried
		want  []string
	}{
		"no take-over": {
			tried{Size: several, Run: chaos.Figures{Kills: []chaos.Killed{{Heirs: true}, {}}}},
			[]string{"take-over: not measured; 1 readers were killed while another was ready", "taken over late    not measured"},
		},
		"none in time": {
			tried{Size: several, Verdict: chaos.Verdict{Late: 1}}, []string{"take-over: not measured", "taken over late    1"},
		},
		"the heir is killed": {
			tried{
				Size: several, Verdict: chaos.Verdict{Checked: chaos.Checked{TakeOvers: 2}},
				Run: chaos.Figures{TakeOvers: []chaos.TakeOver{
					{PinnedMS: 2600, CutMS: 5700}, {PinnedMS: 2600, MovedMS: 4000}, {CutMS: 900}, {PinnedMS: 6000, MovedMS: 7000, Alone: true},
				}},
			},
			[]string{
				"2 partitions lost their reader: another had them after 2.6 s", "oldest after 4.0 s (p50; at most 4.0 s) (moved: not seen, 1)",
				"1 more had to wait for a start, and 1 had no other", "taken over late    0",
			},
		},
		"one process": {tried{}, []string{"taken over late    0"}},
	} {
		var out strings.Builder
		tc.tried.tell(&out)
		for _, want := range tc.want {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s: no %q in\n%s", name, want, out.String())
			}
		}
		if tc.tried.measured() == strings.Contains(out.String(), "not measured;") {
			t.Errorf("%s:\n%s", name, out.String())
		}
	}
}
