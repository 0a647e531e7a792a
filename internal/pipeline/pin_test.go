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

// A message that was counted as held elsewhere keeps the gate shut, whatever
// arrives in the meantime.
func TestGate(t *testing.T) {
	t.Parallel()
	var ran []uint64
	var mu sync.Mutex
	l := newLanes(1, true, new(atomic.Uint64), func(d *delivery) next {
		mu.Lock()
		defer mu.Unlock()
		ran = append(ran, d.seq)
		return next{passed: true}
	})
	pending := 3
	g := &gate{lanes: l, pending: func(context.Context) (int, error) { return pending, nil }}
	try := func() {
		t.Helper()
		if given, err := g.try(t.Context()); err != nil || len(given) > 0 {
			t.Fatalf("gave back %d, %v", len(given), err)
		}
		l.wait()
	}
	accept := func(seq uint64, pin string) int { return len(g.accept(&delivery{key: "k", seq: seq}, pin)) }
	accept(8, "a")
	accept(9, "a")
	accept(9, "a") // delivered twice, held once
	try()
	if g.open || len(ran) > 0 {
		t.Fatalf("open with 2 of 3: %v", ran)
	}
	if given := accept(10, "b"); given != 2 {
		t.Fatalf("gave back %d under a new pin, want 2", given)
	}
	accept(7, "b")
	accept(8, "b")
	accept(9, "b")
	pending = 4
	try()
	accept(11, "b")
	l.wait()
	if want := []uint64{7, 8, 9, 10, 11}; !slices.Equal(ran, want) {
		t.Errorf("ran %v, want %v", ran, want)
	}
}

// TestP3GateIsShutWhereAMessageMayBeLost: what a request brought that ended
// without the broker's word may lack a message, which must not be overtaken; and
// one that is being acknowledged does not stand in for it.
func TestP3GateIsShutWhereAMessageMayBeLost(t *testing.T) {
	t.Parallel()
	var ran []uint64
	began, finish := make(chan struct{}, 1), make(chan struct{})
	l := newLanes(4, true, new(atomic.Uint64), func(d *delivery) next {
		ran = append(ran, d.seq) // one key: one at a time
		if d.seq == 7 {
			began <- struct{}{}
			<-finish
		}
		return next{passed: true}
	})
	pending := 1
	g := &gate{lanes: l, pending: func(context.Context) (int, error) { return pending, nil }}
	try := func(open bool) {
		t.Helper()
		if given, err := g.try(t.Context()); err != nil || len(given) > 0 || g.open != open {
			t.Fatalf("open %v, want %v; gave back %d; %v", g.open, open, len(given), err)
		}
	}
	g.accept(&delivery{key: "k", seq: 7}, "a")
	try(true)
	<-began
	g.doubt() // 8 was sent, and not received
	g.accept(&delivery{key: "k", seq: 9}, "a")
	pending = 2 // 8 and 9, for 7 is acknowledged and not let go of yet
	try(false)
	close(finish)
	l.wait()
	try(false) // 9 alone is held
	g.accept(&delivery{key: "k", seq: 8, deliveries: 2}, "a")
	try(true)
	l.wait()
	if want := []uint64{7, 8, 9}; !slices.Equal(ran, want) {
		t.Errorf("ran %v, want %v", ran, want)
	}
}

// TestP8GateOpensBesideAParkedMessage: what waits behind a message that is to be
// tried again keeps the gate shut for nobody else.
func TestP8GateOpensBesideAParkedMessage(t *testing.T) {
	t.Parallel()
	tried, ran := make(chan uint64, 4), make(chan uint64, 4)
	l := newLanes(4, true, new(atomic.Uint64), func(d *delivery) next {
		if d.key == "down" {
			tried <- d.seq
			return next{park: true, delay: time.Hour}
		}
		ran <- d.seq
		return next{passed: true}
	})
	defer l.release(func(*delivery) bool { return false }) // and with it the timer
	g := &gate{lanes: l, pending: func(context.Context) (int, error) { return 3, nil }}
	g.open, g.pin = true, "a"
	g.accept(&delivery{key: "down", seq: 1}, "a")
	g.accept(&delivery{key: "down", seq: 2}, "a")
	l.wait() // 1 is parked
	g.doubt()
	g.accept(&delivery{key: "up", seq: 3}, "a")
	if _, err := g.try(t.Context()); err != nil || !g.open {
		t.Fatalf("open %v, %v", g.open, err)
	}
	l.wait()
	if len(tried) != 1 || len(ran) != 1 {
		t.Errorf("tried %d of the one scope, ran %d of the other", len(tried), len(ran))
	}
}

// TestP7GateLetsGoOfWhatTheBrokerIsDoneWith: a message that the last replica
// acknowledges after it was delivered here, or that the stream drops, must not
// keep the gate shut for ever.
func TestP7GateLetsGoOfWhatTheBrokerIsDoneWith(t *testing.T) {
	t.Parallel()
	var ran []uint64
	l := newLanes(1, true, new(atomic.Uint64), func(d *delivery) next {
		ran = append(ran, d.seq)
		return next{passed: true}
	})
	g := &gate{lanes: l, pending: func(context.Context) (int, error) { return 1, nil }}
	g.accept(&delivery{key: "k", seq: 5}, "a") // acknowledged since
	g.accept(&delivery{key: "k", seq: 6}, "a")
	if given, err := g.try(t.Context()); err != nil || len(given) != 2 || g.open || l.len() > 0 {
		t.Fatalf("gave back %d, holds %d, open %v, %v", len(given), l.len(), g.open, err)
	}
	g.accept(&delivery{key: "k", seq: 6, deliveries: 2}, "a")
	if _, err := g.try(t.Context()); err != nil || !g.open {
		t.Fatalf("open %v, %v", g.open, err)
	}
	l.wait()
	if !slices.Equal(ran, []uint64{6}) {
		t.Errorf("ran %v", ran)
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
