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
	actNak    action = "nak"  // give it back: the delivery counts
	actWait   action = "wait" // keep it and try again: the delivery does not count
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
	// not explain: those since whose predecessor something else got through.
	strikes int
	// excused: the deliveries are explained by another message, which was buried
	// for them.
	excused bool
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

// judge is the only place where the fate of a message is decided. jitter is a
// random number in [0, 1).
//
// An error that may pass is retried, in place, for as long as it lasts: while
// nothing gets through the stage, a dependency is down, and an outage must cost
// no message however long it is. Failures count only while others get through;
// after MaxDeliveries of them the message is buried. A panic is always the
// message's own fault: it is given back, which counts in the broker. So does a
// process that died, which is why the broker's count is judged before the
// handler runs.
func (c Config) judge(a attempt, jitter float64) verdict {
	refused, isRefused := refusal(a.err)
	switch {
	case isRefused && refused.code == events.CodeUnknownKind:
		if a.age < c.UnknownGrace {
			// Up to 10 min apart, so that the whole grace spends fewer deliveries
			// than make a poison message.
			return c.again(a, actNak, backoff(a.tries, c.RetryBase, max(c.RetryMax, unknownRetryMax(c)), jitter))
		}
		return refused
	case isRefused:
		return refused
	case a.handled && a.err == nil:
		return verdict{action: actAck}
	case !a.handled && !a.excused && a.deliveries > c.MaxDeliveries:
		return poison("delivered %d times without an answer", a.deliveries-1)
	case !a.handled:
		return verdict{action: actHandle}
	}
	delay := backoff(a.tries, c.RetryBase, c.RetryMax, jitter)
	var p *panicked
	switch crashed := errors.As(a.err, &p); {
	case crashed && a.tries >= c.MaxDeliveries, a.strikes >= c.MaxDeliveries:
		return poison("failed %d times, at last with: %v", a.tries, a.err)
	case crashed:
		return c.again(a, actNak, delay)
	}
	return verdict{action: actWait, delay: delay}
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
