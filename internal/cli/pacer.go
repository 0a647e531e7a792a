package cli

import (
	"context"
	"time"
)

// pacer spaces events as they were spaced originally, divided by speed. Delays between
// them shorten the next spaces.
type pacer struct {
	speed float64       // 0: no spaces
	most  time.Duration // bounds a space; 0 does not
	last  time.Time     // when the last one happened
	due   time.Time     // when it was due here
}

// wait returns when an event that happened at an instant is due, or when ctx
// ends. One that happened before the last is due at once.
func (p *pacer) wait(ctx context.Context, at time.Time) error {
	if p.speed == 0 {
		return ctx.Err()
	}
	if p.due.IsZero() {
		p.last, p.due = at, time.Now()
	}
	p.due = p.due.Add(p.space(at.Sub(p.last)))
	if at.After(p.last) {
		p.last = at
	}
	timer := time.NewTimer(time.Until(p.due))
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (p *pacer) space(original time.Duration) time.Duration {
	if original <= 0 {
		return 0
	}
	const longest = float64(24 * 365 * 100 * time.Hour)
	space := time.Duration(min(float64(original)/p.speed, longest))
	if p.most > 0 {
		space = min(space, p.most)
	}
	return space
}
