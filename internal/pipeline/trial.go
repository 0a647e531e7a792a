package pipeline

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"palimpsest/pkg/events"
)

// TrialStream holds a mark for each trial that was begun and not answered.
const TrialStream = "TRIALS"

// maxTrials is how many trials without an answer make a poison message.
const maxTrials = 3

// court holds the trials of one process, one at a time. The broker counts a
// delivery of everything that a dying process held, whoever killed it. So a
// message that was delivered too often is run alone, and before it runs a mark
// is written that outlives the process: it says that whatever dies now dies
// while this message is handled.
type court struct {
	js      jetstream.JetStream
	timeout time.Duration // of what the broker is asked
	longest time.Duration // a trial may last
	opened  time.Time

	mu    sync.Mutex
	until time.Time // when the trial under way must be over
	// stale are marks that stand although the trial was answered, or was not
	// begun, because the broker did not confirm.
	stale map[string]bool
}

func newCourt(cfg Config, js jetstream.JetStream) *court {
	return &court{js: js, timeout: cfg.PublishTimeout, longest: cfg.HandlerTimeout, opened: time.Now(), stale: make(map[string]bool)}
}

// sit reports whether a trial may begin now. A handler that ignores its deadline
// keeps no other from its trial.
func (c *court) sit() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if now.Before(c.until) {
		return false
	}
	c.until = now.Add(c.longest)
	return true
}

func (c *court) rise() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.until = time.Time{}
}

// begun counts the trials of a message that were begun and not answered.
func (c *court) begun(ctx context.Context, mark string) (int, error) {
	if c.isStale(mark) {
		if err := c.clear(ctx, mark); err != nil {
			return 0, err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	stream, err := c.js.Stream(ctx, TrialStream)
	if err != nil {
		return 0, fmt.Errorf("pipeline: count trials: %w", err)
	}
	info, err := stream.Info(ctx, jetstream.WithSubjectFilter(mark))
	if err != nil {
		return 0, fmt.Errorf("pipeline: count trials: %w", err)
	}
	return int(info.State.Subjects[mark]), nil
}

// begin returns when the mark stands, or may stand: then it is stale.
func (c *court) begin(ctx context.Context, mark string) error {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	msg := &nats.Msg{Subject: mark}
	if _, err := c.js.PublishMsg(ctx, msg, jetstream.WithExpectStream(TrialStream)); err != nil {
		c.setStale(mark, true)
		return publishError(msg, err)
	}
	return nil
}

// clear removes all marks of a message.
func (c *court) clear(ctx context.Context, mark string) error {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	stream, err := c.js.Stream(ctx, TrialStream)
	if err == nil {
		err = stream.Purge(ctx, jetstream.WithPurgeSubject(mark))
	}
	c.setStale(mark, err != nil)
	if err != nil {
		return fmt.Errorf("pipeline: clear trials: %w", err)
	}
	return nil
}

func (c *court) isStale(mark string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stale[mark]
}

func (c *court) setStale(mark string, stale bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if stale {
		c.stale[mark] = true
	} else {
		delete(c.stale, mark)
	}
}

func (k *keeper) mark(in events.Raw) string {
	return events.TrialSubject(k.binding.name, in.Stream, in.Sequence)
}

// summon judges a message that is about to be handled. What was delivered too
// often is handled only once the mark of its trial stands; while the broker does
// not take the mark, it waits. Where the verdict is to handle, dismiss must follow.
func (k *keeper) summon(a *attempt, in events.Raw) verdict {
	judge := func() verdict { return k.rt.cfg.judge(*a, rand.Float64()) }
	if a.onTrial = false; a.err != nil || a.deliveries <= k.rt.cfg.MaxDeliveries {
		return judge()
	}
	court := k.rt.court
	if !court.sit() {
		return verdict{action: actDefer, delay: rest}
	}
	a.uptime = time.Since(court.opened)
	a.trials, a.err = court.begun(k.handlers, k.mark(in))
	v := judge()
	if v.action == actHandle {
		if a.err = court.begin(k.handlers, k.mark(in)); a.err == nil {
			a.onTrial, a.trials = true, a.trials+1
			k.log.Warn("trial", "sequence", in.Sequence, "trial", a.trials, "deliveries", a.deliveries)
			return v
		}
		v = judge()
	}
	court.rise()
	return v
}

// dismiss ends what summon began, with the handler's answer. Any answer clears
// the message: it does not kill. A panic is none.
func (k *keeper) dismiss(a *attempt, in events.Raw) {
	if !a.onTrial {
		return
	}
	defer k.rt.court.rise()
	if crashed(a.err) {
		return
	}
	if err := k.rt.court.clear(context.WithoutCancel(k.handlers), k.mark(in)); err != nil {
		k.log.Warn("clear trials", "sequence", in.Sequence, "error", err) // again before the next
	}
}
