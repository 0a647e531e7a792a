package ingest

import "time"

// pause is a time in which a loop does nothing. It is not safe for concurrent
// use.
type pause struct {
	length time.Duration
	until  time.Time
}

// at reports whether the loop pauses at now. A clock that was set back must not
// make the pause longer than it was meant to be.
func (p *pause) at(now time.Time) bool {
	left := p.until.Sub(now)
	return left > 0 && left <= p.length
}

func (p *pause) start(now time.Time, length time.Duration) {
	p.length, p.until = length, now.Add(length)
}

// backoff spaces the rounds of one loop while they fail.
type backoff struct {
	first, most time.Duration
	pause
}

// failed starts the next pause, twice as long as the last.
func (b *backoff) failed(now time.Time) {
	b.start(now, min(max(2*b.length, b.first), b.most))
}

// reset ends the pause.
func (b *backoff) reset() { b.pause = pause{} }
