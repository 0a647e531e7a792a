package chaos

import (
	"slices"
	"sync"
	"time"
)

// progress is how far a run is: the kills to come, those that were made, and what
// the processes have done.
type progress struct {
	mu      sync.Mutex
	left    []Kill
	made    []Killed
	lives   []*process // that followed each kill
	known   int        // episodes consolidated by the rule that runs on each, when last asked
	settled uint64     // the same, counted by each rule
	last    time.Time  // when the last kill was made
}

// reached is how far the run is: when it moves, nothing is stuck.
type reached struct {
	Progress
	settled uint64
}

// now returns the progress that the publishers know, without a request.
func (c *progress) now(p *publishers) reached {
	c.mu.Lock()
	defer c.mu.Unlock()
	return reached{Progress{Acknowledged: int(p.acknowledged.Load()), Consolidated: c.known, Kills: len(c.made)}, c.settled}
}

// reach notes what the processes have done.
func (c *progress) reach(known int, settled uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known, c.settled = known, settled
}

// due takes out the kills that a counter has reached.
func (c *progress) due(counter Counter, count int) (reached []Kill) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left, reached = due(c.left, counter, count)
	return reached
}

// struck notes a kill and the life that followed.
func (c *progress) struck(k Killed, next *process, at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.made, c.lives, c.last = append(c.made, k), append(c.lives, next), at
}

// more reports whether there are kills to come.
func (c *progress) more() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.left) > 0
}

// kills are those that were made, each with how long the next life took to be
// ready.
func (c *progress) kills() []Killed {
	c.mu.Lock()
	defer c.mu.Unlock()
	made := slices.Clone(c.made)
	for n, life := range c.lives {
		if life.isReady() {
			made[n].ReadyMS = life.took.Milliseconds()
		}
	}
	return made
}

// drained is what was left to do at the last kill, and how long that took.
func (c *progress) drained() (backlog int, seconds float64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.made) == 0 {
		return 0, 0
	}
	at := c.made[len(c.made)-1]
	return at.Acknowledged - at.Consolidated, since(c.last)
}
