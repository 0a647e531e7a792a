package pipeline

import (
	"errors"
	"fmt"
	"time"

	"palimpsest/pkg/events"
)

// action is what becomes of a message.
type action string

const (
	actHandle action = "handle" // not judged yet: give it to the handler
	actAck    action = "ack"
	actNak    action = "nak"   // give it back: the delivery counts
	actWait   action = "wait"  // keep it and try again: the delivery does not count
	actDefer  action = "defer" // keep it until its trial may begin: this was no attempt
	actBury   action = "bury"
)

// attempt is all that the verdict on a message rests on.
type attempt struct {
	// handled: the handler has answered with err. Before, err may hold why the
	// message could not be decoded.
	handled bool
	err     error
	// deliveries is the broker's count, from 1; tries adds the attempts that
	// were made in place.
	deliveries, tries int
	age               time.Duration
	// strikes counts the failures of this message that the fault of others does
	// not explain: panics, and those since whose predecessor something else got
	// through.
	strikes int
	// trials were begun and not answered, the one under way (onTrial) included.
	// They are known only of what was delivered more than MaxDeliveries times.
	trials  int
	onTrial bool
	// uptime of the process; known where trials is.
	uptime time.Duration
	// ordered: nothing of the same key may overtake the message.
	ordered bool
}

// verdict is what to do. Code, field and reason tell why it is buried.
type verdict struct {
	action              action
	delay               time.Duration
	code, field, reason string
}

// panicked is the error of a handler that panicked.
type panicked struct {
	value any
	stack []byte
}

func (p *panicked) Error() string { return fmt.Sprintf("panic: %v", p.value) }

func crashed(err error) bool {
	var p *panicked
	return errors.As(err, &p)
}

// judge is the only place where the fate of a message is decided. jitter is a
// random number in [0, 1).
//
// An error that may pass is retried, in place, for as long as it lasts: while
// nothing gets through the stage, a dependency is down, and an outage must cost
// no message however long it is. Failures count only while others get through;
// after MaxDeliveries of them the message is buried. A panic is always the
// message's own fault, and is given back. What a handler postpones is given back
// as well, and is no failure.
//
// A message may also kill the process. That shows in the broker's count, which
// is why that is judged before the handler runs. But the count alone buries
// nothing, since it grows for all that a dying process held: it only leads to a
// trial.
func (c Config) judge(a attempt, jitter float64) verdict {
	refused, isRefused := refusal(a.err)
	switch {
	case isRefused && refused.code == events.CodeUnknownKind:
		if a.age < c.UnknownGrace {
			// Up to 10 min apart, so that the whole grace spends fewer deliveries
			// than lead to a trial.
			return c.again(a, actNak, backoff(a.tries, c.RetryBase, max(c.RetryMax, unknownRetryMax(c)), jitter))
		}
		return refused
	case isRefused:
		return refused
	case a.handled && a.err == nil:
		return verdict{action: actAck}
	case a.err == nil && a.deliveries <= c.MaxDeliveries:
		return verdict{action: actHandle}
	case a.err == nil:
		return c.try(a)
	}
	if after, ok := Postponed(a.err); ok {
		return c.again(a, actNak, backoff(1, after, after, jitter))
	}
	// What others' faults explain does not make the pause longer.
	delay := max(c.outage(a.tries, jitter), backoff(a.strikes, c.RetryBase, c.RetryMax, jitter))
	switch isPanic := crashed(a.err); {
	case a.strikes >= c.MaxDeliveries, isPanic && a.trials >= maxTrials:
		return poison("failed %d times, at last with: %v", a.tries, a.err)
	case isPanic:
		return c.again(a, actNak, delay)
	}
	return verdict{action: actWait, delay: delay}
}

// try judges whether a message that was delivered too often may be handled. The
// process must have lived for a while, longer for each further trial: while
// something else kills it again and again, its death says nothing about the
// message, which may be a slow one, and under way whenever the process dies.
func (c Config) try(a attempt) verdict {
	if a.trials >= maxTrials {
		return poison("delivered %d times, and handled alone %d times, without an answer", a.deliveries-1, a.trials)
	}
	if left := c.TrialRest<<(2*a.trials) - a.uptime; left > 0 {
		return verdict{action: actDefer, delay: left}
	}
	return verdict{action: actHandle}
}

// again gives a message back, unless that would let its successors overtake it.
func (Config) again(a attempt, act action, delay time.Duration) verdict {
	if a.ordered {
		act = actWait
	}
	return verdict{action: act, delay: delay}
}

func unknownRetryMax(c Config) time.Duration { return c.UnknownGrace / 6 }

func poison(format string, args ...any) verdict {
	return verdict{action: actBury, code: events.CodePoison, reason: fmt.Sprintf(format, args...)}
}

// refusal reads an error that is permanent.
func refusal(err error) (verdict, bool) {
	if r := (*rejected)(nil); errors.As(err, &r) {
		return verdict{action: actBury, code: r.code, field: r.field, reason: err.Error()}, true
	}
	if f := (*events.FieldError)(nil); errors.As(err, &f) {
		return verdict{action: actBury, code: f.Code, field: f.Field, reason: err.Error()}, true
	}
	return verdict{}, false
}

// backoff is the pause after the n-th try (from 1): base · 2ⁿ⁻¹, at most most,
// ± 20 % by jitter in [0, 1).
func backoff(n int, base, most time.Duration, jitter float64) time.Duration {
	d := base
	for range n - 1 {
		if d >= most/2 {
			d = most
			break
		}
		d *= 2
	}
	return time.Duration(float64(min(d, most)) * (0.8 + 0.4*jitter))
}
