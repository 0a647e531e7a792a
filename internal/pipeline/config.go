package pipeline

import (
	"cmp"
	"errors"
	"fmt"
	"time"
)

// Config bounds the runtime. The zero value of each field means its default.
type Config struct {
	// Concurrency is how many handlers of one stage run at a time. Default 64.
	Concurrency int
	// Hold is how many messages one stage takes from its consumer before the
	// first of them is done. Default 2 × Concurrency.
	Hold int
	// HandlerTimeout is the deadline of one call of a handler. Default 5 min.
	HandlerTimeout time.Duration
	// PublishTimeout is how long an acknowledgement of the broker is waited for.
	// Default 10 s.
	PublishTimeout time.Duration
	// DrainTimeout is how long all stages together may finish what they hold
	// when the runtime stops; then handlers are cancelled. Default 20 s.
	DrainTimeout time.Duration
	// RetryBase and RetryMax bound the backoff between attempts. Defaults 100 ms
	// and 30 s.
	RetryBase, RetryMax time.Duration
	// RetryOutage takes the place of RetryMax for failures while nothing gets
	// through the stage: a dependency is down, and once it is back nothing may wait
	// for long. Default 2 s, and at most RetryMax.
	RetryOutage time.Duration
	// MaxDeliveries is after how many failures of its own a message is buried, and
	// after how many deliveries without an answer. Default 20.
	MaxDeliveries int
	// UnknownGrace is how long a message of an unknown kind waits for a newer version
	// of the service. Default 1 h.
	UnknownGrace time.Duration
	// Backlog is how many episodes may wait to be stored, and BacklogAge how long,
	// before a caller's next is refused with [ErrBacklog]. Defaults 100,000 and
	// 1 min.
	Backlog    int
	BacklogAge time.Duration
}

// grace is how long cancelled handlers have to return before their messages go back
// to the broker.
const grace = time.Second

// WithDefaults returns c with its default in each zero member.
func (c Config) WithDefaults() Config {
	c.Concurrency = cmp.Or(c.Concurrency, 64)
	c.Hold = cmp.Or(c.Hold, 2*c.Concurrency)
	c.HandlerTimeout = cmp.Or(c.HandlerTimeout, 5*time.Minute)
	c.PublishTimeout = cmp.Or(c.PublishTimeout, 10*time.Second)
	c.DrainTimeout = cmp.Or(c.DrainTimeout, 20*time.Second)
	c.RetryBase = cmp.Or(c.RetryBase, 100*time.Millisecond)
	c.RetryMax = cmp.Or(c.RetryMax, 30*time.Second)
	c.RetryOutage = min(cmp.Or(c.RetryOutage, 2*time.Second), c.RetryMax)
	c.MaxDeliveries = cmp.Or(c.MaxDeliveries, 20)
	c.UnknownGrace = cmp.Or(c.UnknownGrace, time.Hour)
	c.Backlog = cmp.Or(c.Backlog, 100_000)
	c.BacklogAge = cmp.Or(c.BacklogAge, time.Minute)
	return c
}

// outage is the pause after the n-th attempt during an outage.
func (c Config) outage(n int, jitter float64) time.Duration {
	return backoff(n, c.RetryBase, c.RetryOutage, jitter)
}

// Validate names every field that makes no sense.
func (c Config) Validate() error {
	c = c.WithDefaults()
	var errs []error
	refuse := func(bad bool, format string, args ...any) {
		if bad {
			errs = append(errs, fmt.Errorf("pipeline: "+format, args...))
		}
	}
	refuse(c.Concurrency < 1, "concurrency: %d is less than 1", c.Concurrency)
	refuse(c.Hold < c.Concurrency, "hold: %d is less than concurrency %d", c.Hold, c.Concurrency)
	refuse(c.MaxDeliveries < 1, "max deliveries: %d is less than 1", c.MaxDeliveries)
	refuse(c.HandlerTimeout < 0, "handler timeout: %v is negative", c.HandlerTimeout)
	refuse(c.PublishTimeout < 0, "publish timeout: %v is negative", c.PublishTimeout)
	refuse(c.DrainTimeout < 0, "drain timeout: %v is negative", c.DrainTimeout)
	refuse(c.RetryBase < 0, "retry base: %v is negative", c.RetryBase)
	refuse(c.RetryMax < c.RetryBase, "retry max: %v is less than retry base %v", c.RetryMax, c.RetryBase)
	refuse(c.RetryOutage < 0, "retry outage: %v is negative", c.RetryOutage)
	refuse(c.UnknownGrace < 0, "unknown grace: %v is negative", c.UnknownGrace)
	refuse(c.Backlog < 1, "backlog: %d is less than 1", c.Backlog)
	refuse(c.BacklogAge < 0, "backlog age: %v is negative", c.BacklogAge)
	return errors.Join(errs...)
}
