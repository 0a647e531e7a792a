package pipeline

import (
	"errors"
	"fmt"
	"time"

	"palimpsest/pkg/events"
)

// action is the result of a verdict.
type action string

const (
	actHandle action = "handle" // not judged yet: give it to the handler
	actAck    action = "ack"
	actNak    action = "nak"   // give it back: the delivery counts
	actRenew  action = "renew" // give it back as a copy, whose deliveries count from 1
	actWait   action = "wait"  // keep it and try again: the delivery does not count
	actBury   action = "bury"
)

// attempt is the input of a verdict.
type attempt struct {
	// handled: the handler has returned err. Before that, err may be the error of
	// decoding the message.
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
	// queue: the message is of a work queue, which takes it back as a copy.
	queue bool
	// full: its project may keep no further message of the queue here.
	full bool
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

// judge returns the verdict on a message; no other function does. jitter is a random
// number in [0, 1).
//
// An error that may pass is retried for as long as it lasts: while nothing gets
// through the stage, a dependency is down, and an outage must cost no message
// however long it is. A bounded number of messages of each project is retried in
// place; the others go back to the stream, as a copy before they are delivered
// suspiciously often. Failures count only while others get through;
// after MaxDeliveries of them the message is buried. A panic is always the
// message's own failure. A postponed message waits as well, without a failure.
//
// A message that kills the process leaves no error behind, only deliveries without
// an answer: after MaxDeliveries it is buried before its handler runs.
func (c Config) judge(a attempt, jitter float64) verdict {
	refused, isRefused := refusal(a.err)
	switch {
	case isRefused && refused.code == events.CodeUnknownKind:
		if a.age < c.UnknownGrace {
			// Up to 10 min apart, so that the whole grace spends fewer deliveries
			// than make a poison message.
			return verdict{action: actNak, delay: backoff(a.tries, c.RetryBase, max(c.RetryMax, unknownRetryMax(c)), jitter)}
		}
		return refused
	case isRefused:
		return refused
	case a.handled && a.err == nil:
		return verdict{action: actAck}
	case a.err == nil && a.deliveries <= c.MaxDeliveries:
		return verdict{action: actHandle}
	case a.err == nil:
		return poison("delivered %d times without an answer", a.deliveries-1)
	}
	if after, ok := Postponed(a.err); ok {
		v := verdict{action: actWait, delay: backoff(1, after, after, jitter)}
		switch {
		case a.queue && a.deliveries >= c.suspectAfter():
			v.action = actRenew
		case a.queue:
			v.action = actNak
		}
		return v
	}
	// Only strikes make the pause longer than that of an outage.
	delay := max(c.outage(a.tries, jitter), backoff(a.strikes, c.RetryBase, c.RetryMax, jitter))
	switch {
	case a.strikes >= c.MaxDeliveries:
		return poison("failed %d times, at last with: %v", a.tries, a.err)
	case a.full && a.deliveries >= c.suspectAfter():
		return verdict{action: actRenew, delay: delay}
	case a.full:
		return verdict{action: actNak, delay: delay}
	}
	return verdict{action: actWait, delay: delay}
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
