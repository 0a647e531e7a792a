package chaos

import (
	"context"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// publishers are all voices of a workload, each speaking by itself.
type publishers struct {
	workload *Workload
	wire     *wire
	left     []atomic.Int64 // per user: voices that still speak
	begun    time.Time
	turns    atomic.Int64 // count of first publications, started ones included

	acknowledged atomic.Int64 // episodes, counted at their first acknowledgement
	swept        atomic.Int64 // repetitions that the broker knew
	taken        atomic.Int64 // repetitions that it took for new
	retried      atomic.Int64 // publishes that got no acknowledgement
	reached      chan struct{}
	acks         []Acks // per voice; a voice writes its own
}

// Acks is what a voice was acknowledged: for each step, in order, the sequence
// in the stream of episodes. It is shorter than the steps where it was stopped.
type Acks []uint64

func newPublishers(w *Workload, wire *wire) *publishers {
	p := &publishers{
		workload: w, wire: wire, left: make([]atomic.Int64, len(w.Users)),
		reached: make(chan struct{}, 1), acks: make([]Acks, len(w.Voices)),
	}
	for _, v := range w.Voices {
		p.left[v.User].Add(1)
	}
	return p
}

// run returns when everything is acknowledged.
func (p *publishers) run(ctx context.Context) error {
	p.begun = time.Now()
	group, ctx := errgroup.WithContext(ctx)
	for n := range p.workload.Voices {
		group.Go(func() error { return p.speak(ctx, n) })
	}
	return group.Wait()
}

// speak takes the steps of one voice, each after the acknowledgement of the one
// before. Whichever voice of a user is the last ends the sessions.
func (p *publishers) speak(ctx context.Context, n int) error {
	voice := p.workload.Voices[n]
	user := p.workload.Users[voice.User]
	spoken := map[int]time.Time{}
	for _, step := range voice.Steps {
		if err := pause(ctx, time.Until(p.when(step, spoken[step.Episode]))); err != nil {
			return err
		}
		msg, err := user.message(step.Episode)
		if err != nil {
			return err
		}
		ack, tries, err := p.wire.publish(ctx, n, msg)
		p.retried.Add(int64(tries - 1))
		if err != nil {
			return err
		}
		spoken[step.Episode] = time.Now()
		p.acks[n] = append(p.acks[n], ack.Sequence)
		p.count(n, step, ack.Duplicate)
	}
	if p.left[voice.User].Add(-1) > 0 {
		return nil
	}
	for _, session := range user.Sessions {
		msg, err := user.end(session)
		if err != nil {
			return err
		}
		if _, _, err := p.wire.publish(ctx, n, msg); err != nil {
			return err
		}
	}
	return nil
}

// when returns the earliest time of a step. First publications are spread over the
// time of the run. A repetition beyond the broker's deduplication window waits for
// the end of that window; last is the time of the earlier publication.
func (p *publishers) when(step Step, last time.Time) time.Time {
	switch step.Again {
	case First:
		turn := p.turns.Add(1) - 1
		return p.begun.Add(p.workload.Size.span() * time.Duration(turn) / time.Duration(p.workload.Size.Episodes))
	case Past:
		return last.Add(dedupWindow + dedupWindow/4)
	case AtOnce:
	}
	return last
}

// count tells what came of a step. The greeting counts for a user's first voice
// alone.
func (p *publishers) count(n int, step Step, known bool) {
	voices := p.workload.Voices
	switch {
	case step.Again == First && step.Episode == 0 && n > 0 && voices[n-1].User == voices[n].User:
	case step.Again == First:
		p.acknowledged.Add(1)
		select {
		case p.reached <- struct{}{}:
		default:
		}
	case known:
		p.swept.Add(1)
	default:
		p.taken.Add(1)
	}
}
