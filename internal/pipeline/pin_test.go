package pipeline

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"palimpsest/pkg/events"
)

// taken records who handled what, in order.
type taken struct {
	mu  sync.Mutex
	ids []string
	by  map[string]int
	new chan struct{}
}

func newTaken() *taken { return &taken{by: map[string]int{}, new: make(chan struct{}, 10_000)} }

func (r *taken) note(who, id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ids = append(r.ids, id)
	r.by[who]++
	r.new <- struct{}{}
}

func (r *taken) order() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.ids)
}

func (r *taken) handler(who string) Stage {
	return onEpisode(func(_ context.Context, in episode) ([]events.Payload, error) {
		r.note(who, in.ID)
		return nil, nil
	})
}

// A replica that dies takes its connection with it, while it holds messages.
// The next one must not begin before it has those too.
func TestTakeOverInOrder(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.standard(pinned)
	conn, js := b.connect()
	stuck := make(chan struct{}, 100)
	release := make(chan struct{})
	// The first replica gets hold of messages and never finishes.
	_, stopFirst := b.startOn(quickConfig(), js, conn, onEpisode(func(ctx context.Context, _ episode) ([]events.Payload, error) {
		stuck <- struct{}{}
		<-release
		return nil, ctx.Err()
	}))
	for i := range 30 {
		b.say(user(fmt.Sprintf("u%d", i%3)), fmt.Sprintf("%02d", i))
	}
	for range 3 {
		await(t, stuck)
	}
	got := newTaken()
	b.start(quickConfig(), got.handler("second"))
	conn.Close() // as the kernel does for a killed process
	died := time.Now()
	for i := range 20 { // newer than what the dead replica holds
		b.say(user(fmt.Sprintf("u%d", i%3)), fmt.Sprintf("%02d", 30+i))
	}
	for range 50 {
		await(t, got.new)
	}
	if took := time.Since(died); took > 5*time.Second {
		t.Errorf("took over after %v", took)
	}
	last := map[byte]string{}
	for _, id := range got.order() {
		var n int
		_, _ = fmt.Sscanf(id, "%d", &n)
		key := byte(n % 3)
		if n >= 30 {
			key = byte((n - 30) % 3)
		}
		if id < last[key] {
			t.Errorf("%s after %s", id, last[key])
		}
		last[key] = id
	}
	b.settled("EPISODES", "episodes")
	close(release)
	stopFirst()
}

// A replica that stops in good order hands over at once.
func TestHandOver(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.standard(pinned)
	got := newTaken()
	_, stopFirst := b.start(quickConfig(), got.handler("first"))
	b.say(user("ann"), "1")
	await(t, got.new)
	conn, js := b.connect()
	b.startOn(quickConfig(), js, conn, got.handler("second"))
	stopFirst()
	stopped := time.Now()
	b.say(user("ann"), "2")
	await(t, got.new)
	if took := time.Since(stopped); took > 2*time.Second {
		t.Errorf("handed over after %v", took)
	}
}

func TestPinStaysBetweenLiveReplicas(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.standard(pinned)
	moved := make(chan struct{}, 100)
	sub, err := b.conn.Subscribe("$JS.EVENT.ADVISORY.CONSUMER.*.EPISODES.>", func(m *nats.Msg) {
		if subject := m.Subject; len(subject) > 0 && (strings.Contains(subject, ".UNPINNED.") || strings.Contains(subject, ".PINNED.")) {
			moved <- struct{}{}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sub.Unsubscribe() }()
	got := newTaken()
	var slow atomic.Bool
	for _, who := range []string{"first", "second"} {
		conn, js := b.connect()
		b.startOn(quickConfig(), js, conn, onEpisode(func(_ context.Context, in episode) ([]events.Payload, error) {
			if slow.Load() { // a handler must not cost its replica the pin
				<-time.After(4 * time.Second)
			}
			got.note(who, in.ID)
			return nil, nil
		}))
	}
	b.say(user("ann"), "0")
	await(t, got.new)
	await(t, moved) // pinned once
	span := 30 * time.Second
	if testing.Short() {
		span = 6 * time.Second
	}
	slow.Store(true)
	b.say(user("ann"), "1")
	await(t, got.new)
	slow.Store(false)
	select { // idle for the rest: only pull requests hold the pin
	case <-moved:
		t.Error("the pin moved")
	case <-time.After(span):
	}
	for i := range 20 {
		b.say(user("ann"), fmt.Sprint(i+2))
		await(t, got.new)
	}
	if len(got.by) != 1 {
		t.Errorf("handled by %v", got.by)
	}
}

func TestCheckConsumer(t *testing.T) {
	t.Parallel()
	good := jetstream.ConsumerConfig{
		Durable: "x", AckPolicy: jetstream.AckExplicitPolicy, MaxDeliver: -1, AckWait: 4 * time.Second, MaxAckPending: 1000,
	}
	for name, c := range map[string]struct {
		pinned bool
		change func(*jetstream.ConsumerConfig)
		ok     bool
	}{
		"plain":             {false, func(*jetstream.ConsumerConfig) {}, true},
		"pinned":            {true, func(*jetstream.ConsumerConfig) {}, true},
		"long ack wait":     {false, func(c *jetstream.ConsumerConfig) { c.AckWait = time.Minute }, true},
		"max deliver":       {false, func(c *jetstream.ConsumerConfig) { c.MaxDeliver = 20 }, false},
		"no ack":            {false, func(c *jetstream.ConsumerConfig) { c.AckPolicy = jetstream.AckNonePolicy }, false},
		"short ack wait":    {false, func(c *jetstream.ConsumerConfig) { c.AckWait = time.Second }, false},
		"backoff":           {false, func(c *jetstream.ConsumerConfig) { c.BackOff = []time.Duration{time.Second} }, false},
		"push":              {false, func(c *jetstream.ConsumerConfig) { c.DeliverSubject = "x" }, false},
		"overflow":          {false, func(c *jetstream.ConsumerConfig) { c.PriorityPolicy = jetstream.PriorityPolicyOverflow }, false},
		"default pin ttl":   {true, func(c *jetstream.ConsumerConfig) { c.PinnedTTL = 2 * time.Minute }, false},
		"short pin ttl":     {true, func(c *jetstream.ConsumerConfig) { c.PinnedTTL = 2 * time.Second }, false},
		"default ack wait":  {true, func(c *jetstream.ConsumerConfig) { c.AckWait = 30 * time.Second }, false},
		"ack wait ≤ ttl":    {true, func(c *jetstream.ConsumerConfig) { c.AckWait = 3 * time.Second }, false},
		"other group":       {true, func(c *jetstream.ConsumerConfig) { c.PriorityGroups = []string{"x"} }, false},
		"unbounded pending": {true, func(c *jetstream.ConsumerConfig) { c.MaxAckPending = -1 }, false},
	} {
		cfg := good
		if c.pinned {
			pinned(&cfg)
		}
		c.change(&cfg)
		if err := checkConsumer(cfg); (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}
