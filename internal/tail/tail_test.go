package tail_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"

	"palimpsest/internal/tail"
	"palimpsest/internal/testengine/brokertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const streamName = "TAILED"

// limit bounds what a test waits for.
const limit = 30 * time.Second

func start(t *testing.T) *brokertest.Env {
	t.Helper()
	env := brokertest.Start(t)
	makeStream(t, env)
	return env
}

func makeStream(t *testing.T, env *brokertest.Env) {
	t.Helper()
	_, err := env.JS.CreateStream(bounded(t), jetstream.StreamConfig{Name: streamName, Subjects: []string{"tailed.>"}})
	if err != nil {
		t.Fatal(err)
	}
}

func bounded(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	return ctx
}

// publish adds n messages, named by their place in the stream.
func publish(t *testing.T, env *brokertest.Env, subject string, n int) {
	t.Helper()
	for range n {
		if _, err := env.JS.Publish(bounded(t), subject, []byte("m")); err != nil {
			t.Fatal(err)
		}
	}
}

// reader returns a reader that is closed with the test.
func reader(t *testing.T, cfg tail.Config) *tail.Reader {
	t.Helper()
	cfg.Stream = streamName
	r := tail.New(cfg)
	t.Cleanup(r.Close)
	return r
}

// read returns the sequences of the next n messages; errors are tried again.
func read(t *testing.T, r *tail.Reader, n int) []uint64 {
	t.Helper()
	ctx := bounded(t)
	var seen []uint64
	for len(seen) < n {
		messages, err := r.Read(ctx, n-len(seen), time.Second)
		if ctx.Err() != nil {
			t.Fatalf("read %d of %d: %v", len(seen), n, err)
		}
		for _, m := range messages {
			seen = append(seen, m.Sequence)
		}
	}
	return seen
}

func wantRun(t *testing.T, seen []uint64, from, to uint64) {
	t.Helper()
	for i, got := range seen {
		if want := from + uint64(i); got != want {
			t.Fatalf("message %d is %d, want %d", i, got, want)
		}
	}
	if want := int(to - from + 1); len(seen) != want {
		t.Fatalf("%d messages, want %d", len(seen), want)
	}
}

func TestReadsInOrderFromAPlace(t *testing.T) {
	t.Parallel()
	env := start(t)
	publish(t, env, "tailed.a", 1500)
	r := reader(t, tail.Config{JS: env.JS, After: 10})
	wantRun(t, read(t, r, 1490), 11, 1500)
	if got, err := r.Read(bounded(t), 1, 10*time.Millisecond); err != nil || len(got) > 0 {
		t.Errorf("behind the end: %v, %v", got, err)
	}
	publish(t, env, "tailed.b", 1)
	wantRun(t, read(t, r, 1), 1501, 1501)
	if r.At() != 1501 {
		t.Errorf("at %d", r.At())
	}
}

func TestReadsWhatTheFiltersMatch(t *testing.T) {
	t.Parallel()
	env := start(t)
	for range 3 {
		for _, subject := range []string{"tailed.a", "tailed.b", "tailed.c"} {
			publish(t, env, subject, 1)
		}
	}
	r := reader(t, tail.Config{JS: env.JS, Filters: []string{"tailed.a", "tailed.c"}})
	if got := fmt.Sprint(read(t, r, 6)); got != "[1 3 4 6 7 9]" {
		t.Error(got)
	}
}

// TestReadsThroughARestart: the consumer is gone with the server.
func TestReadsThroughARestart(t *testing.T) {
	t.Parallel()
	env := start(t)
	publish(t, env, "tailed.a", 100)
	r := reader(t, tail.Config{JS: env.JS})
	wantRun(t, read(t, r, 40), 1, 40)
	env.Restart(t)
	publish(t, env, "tailed.a", 10)
	wantRun(t, read(t, r, 70), 41, 110)
}

// TestReadsWhatGotLost: the last message was sent and never came.
func TestReadsWhatGotLost(t *testing.T) {
	t.Parallel()
	env := start(t)
	const ahead = 64
	publish(t, env, "tailed.a", ahead+5)
	r := reader(t, tail.Config{JS: env.JS, Ahead: ahead})
	wantRun(t, read(t, r, ahead/2), 1, ahead/2)
	brokertest.Steal(t, env.JS, streamName, 5)
	wantRun(t, read(t, r, ahead/2+5), ahead/2+1, ahead+5)
}

// TestRefusesAStreamThatWasCut: a server would wait for the sequence that the
// stream no longer reaches.
func TestRefusesAStreamThatWasCut(t *testing.T) {
	t.Parallel()
	env := start(t)
	publish(t, env, "tailed.a", 3)
	if _, err := reader(t, tail.Config{JS: env.JS, After: 4}).Read(bounded(t), 1, time.Second); !errors.Is(err, tail.ErrCut) {
		t.Errorf("behind the end: %v", err)
	}
	r := reader(t, tail.Config{JS: env.JS})
	read(t, r, 3)
	if err := env.JS.DeleteStream(bounded(t), streamName); err != nil {
		t.Fatal(err)
	}
	makeStream(t, env)
	ctx := bounded(t)
	for {
		_, err := r.Read(ctx, 1, time.Second)
		if errors.Is(err, tail.ErrCut) {
			break
		}
		if ctx.Err() != nil {
			t.Fatalf("after the stream was made anew: %v", err)
		}
	}
}
