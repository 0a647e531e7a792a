package ingest

import "time"

// backoff spaces the rounds of one loop while they fail. It is not safe for
// concurrent use.
type backoff struct {
	first, most time.Duration
	next        time.Duration
	until       time.Time
}

// at reports whether the loop pauses at now. A clock that was set back must not
// make the pause longer than it was meant to be.
func (b *backoff) at(now time.Time) bool {
	left := b.until.Sub(now)
	return left > 0 && left <= b.next
}

// failed starts the next pause, twice as long as the last.
func (b *backoff) failed(now time.Time) {
	b.next = min(max(2*b.next, b.first), b.most)
	b.until = now.Add(b.next)
}

// reset ends the pause.
func (b *backoff) reset() { b.next, b.until = 0, time.Time{} }
