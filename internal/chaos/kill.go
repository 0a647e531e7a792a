package chaos

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"
)

// Counter is what a kill waits for.
type Counter string

// The counters, over all users.
const (
	Acknowledged Counter = "acknowledged" // episodes, to their publishers
	Consolidated Counter = "consolidated" // episodes, by the rule that runs on each
	Elapsed      Counter = "elapsed"      // milliseconds since publishing began
)

// Kill ends a process once a counter has reached a figure. Unless a clock is asked
// for, it waits for counts: on a machine of another speed it meets the same work.
type Kill struct {
	Counter Counter `json:"counter"`
	At      int     `json:"at"`
	// Process is its place in the plan.
	Process int `json:"process,omitempty"`
}

// Compare orders kills by counter, then by figure.
func (k Kill) Compare(other Kill) int {
	return cmp.Or(cmp.Compare(k.Counter, other.Counter), cmp.Compare(k.At, other.At))
}

// drawKills lets half of the kills fall while episodes are published, and half
// while what was published is worked on, which takes longer; or all of them by
// the clock.
func drawKills(size Size, random *rand.Rand) []Kill {
	kills := make([]Kill, size.Kills)
	for n := range kills {
		switch {
		case size.Every > 0:
			kills[n] = Kill{Counter: Elapsed, At: int((time.Duration(n+1) * size.Every).Milliseconds())}
		case n%2 == 1:
			kills[n] = Kill{Counter: Consolidated, At: 1 + random.IntN(size.Episodes)}
		default:
			kills[n] = Kill{Counter: Acknowledged, At: 1 + random.IntN(size.Episodes)}
		}
	}
	slices.SortFunc(kills, Kill.Compare)
	if size.Processes > 1 {
		for n := range kills {
			kills[n].Process = random.IntN(size.Processes)
		}
	}
	return kills
}

// due splits what is left into the kills that a counter has reached and the rest.
func due(left []Kill, counter Counter, count int) (rest, reached []Kill) {
	for _, k := range left {
		if k.Counter == counter && k.At <= count {
			reached = append(reached, k)
			continue
		}
		rest = append(rest, k)
	}
	return rest, reached
}
