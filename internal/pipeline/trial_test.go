package pipeline

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"palimpsest/pkg/events"
)

// outlived delivers all messages of a consumer n times to nobody, as if so many
// processes had died that held them.
func (b *bench) outlived(n int) {
	b.tb.Helper()
	consumer, err := b.js.Consumer(b.context(), "EPISODES", "episodes")
	if err != nil {
		b.tb.Fatal(err)
	}
	stream, err := b.js.Stream(b.context(), "EPISODES")
	if err != nil {
		b.tb.Fatal(err)
	}
	// The stream acknowledges a message before it tells its consumers of it.
	waiting := int(stream.CachedInfo().State.Msgs)
	b.eventually("the consumer knows of all", func() bool {
		info, err := consumer.Info(b.context())
		return err == nil && int(info.NumPending) == waiting
	})
	for range n {
		batch, err := consumer.Fetch(waiting, jetstream.FetchMaxWait(patience))
		if err != nil {
			b.tb.Fatal(err)
		}
		for msg := range batch.Messages() {
			if err := msg.Nak(); err != nil {
				b.tb.Fatal(err)
			}
		}
		if err := batch.Error(); err != nil {
			b.tb.Fatal(err)
		}
	}
}

// convict marks n trials of the first episode.
func (b *bench) convict(n int) {
	b.tb.Helper()
	for range n {
		if _, err := b.js.Publish(b.context(), events.TrialSubject("episodes", "EPISODES", 1), nil); err != nil {
			b.tb.Fatal(err)
		}
	}
}

// marks counts the trials without an answer.
func (b *bench) marks() uint64 {
	b.tb.Helper()
	stream, err := b.js.Stream(b.context(), TrialStream)
	if err != nil {
		b.tb.Fatal(err)
	}
	return stream.CachedInfo().State.Msgs
}

// both runs a test with a stage that takes messages one by one, and with one
// that takes batches.
func both(t *testing.T, test func(t *testing.T, b *bench, stage func(handle func(episode) error) Stage)) {
	t.Helper()
	for name, stage := range map[string]func(func(episode) error) Stage{
		"single": func(handle func(episode) error) Stage {
			return onEpisode(func(_ context.Context, in episode) ([]events.Payload, error) { return nil, handle(in) })
		},
		"batch": func(handle func(episode) error) Stage {
			return batchStage(func(_ context.Context, in []episode) error {
				for _, e := range in {
					if err := handle(e); err != nil {
						return err
					}
				}
				return nil
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.standard()
			test(t, b, stage)
		})
	}
}

// However many processes died that held it, a message whose trials do not kill
// gets through.
func TestDeliveriesAloneBuryNothing(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bench, stage func(func(episode) error) Stage) {
		for _, who := range []string{"ann", "bob", "eve"} {
			b.say(user(who), who)
		}
		b.outlived(60)
		b.convict(maxTrials - 1)
		var handled, unmarked atomic.Int32
		_, stop := b.start(quickConfig(), stage(func(episode) error {
			handled.Add(1)
			if b.marks() == 0 {
				unmarked.Add(1)
			}
			return nil
		}))
		b.settled("EPISODES", "episodes")
		stop()
		b.letters(0)
		if handled.Load() != 3 || unmarked.Load() != 0 {
			t.Errorf("%d handled, %d of them without a mark", handled.Load(), unmarked.Load())
		}
		if n := b.marks(); n != 0 {
			t.Errorf("%d marks are left of trials that were answered", n)
		}
	})
}

// What three trials could not answer is buried, and not handled again.
func TestTrialsWithoutAnAnswerBury(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bench, stage func(func(episode) error) Stage) {
		b.say(user("ann"), "ann")
		b.outlived(21)
		b.convict(maxTrials)
		var handled atomic.Int32
		_, stop := b.start(quickConfig(), stage(func(episode) error { handled.Add(1); return nil }))
		letter := b.letters(1)[0]
		b.settled("EPISODES", "episodes")
		stop()
		if letter.Code != events.CodePoison || letter.CausationID != "ann" || handled.Load() != 0 {
			t.Errorf("handled %d times; letter %+v", handled.Load(), letter)
		}
	})
}

// A failure is an answer too: an outage costs no trial, however long it lasts. A
// panic is none.
func TestFailureIsAnAnswer(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bench, stage func(func(episode) error) Stage) {
		b.say(user("ann"), "ann")
		b.outlived(21)
		var handled atomic.Int32
		_, stop := b.start(quickConfig(), stage(func(episode) error {
			switch n := handled.Add(1); {
			case n <= 3*maxTrials:
				return errors.New("connection refused")
			case n < 4*maxTrials:
				panic("not an answer")
			}
			return nil
		}))
		b.settled("EPISODES", "episodes")
		stop()
		b.letters(0)
		if n := b.marks(); n != 0 || handled.Load() != 4*maxTrials {
			t.Errorf("handled %d times, %d marks", handled.Load(), n)
		}
	})
}

// Where no mark can be written, what may kill waits, and all else passes.
func TestWithoutTrialsSuspectsWait(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bench, stage func(func(episode) error) Stage) {
		if err := b.js.DeleteStream(b.context(), TrialStream); err != nil {
			t.Fatal(err)
		}
		b.say(user("ann"), "suspect")
		b.outlived(21)
		handled := make(chan string, 10)
		rt, stop := b.start(quickConfig(), stage(func(in episode) error { handled <- in.ID; return nil }))
		b.say(user("bob"), "new")
		if got := await(t, handled); got != "new" {
			t.Fatalf("handled %s", got)
		}
		b.eventually("the suspect is tried again and again", func() bool { return rt.Stats()[0].Retried > 5 })
		b.letters(0)
		b.stream(TrialStream, jetstream.LimitsPolicy, "palimpsest.trials.*.*.*")
		if got := await(t, handled); got != "suspect" {
			t.Fatalf("handled %s", got)
		}
		b.settled("EPISODES", "episodes")
		stop()
		b.letters(0)
	})
}

// A process that was just started may be about to die of something else.
func TestYoungProcessBeginsNoTrial(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bench, stage func(func(episode) error) Stage) {
		b.say(user("ann"), "suspect")
		b.outlived(21)
		handled := make(chan string, 10)
		cfg := quickConfig()
		cfg.TrialRest = time.Hour
		rt, stop := b.start(cfg, stage(func(in episode) error { handled <- in.ID; return nil }))
		for _, id := range []string{"one", "two", "three"} {
			b.say(user("ann"), id)
			if got := await(t, handled); got != id {
				t.Fatalf("handled %s", got)
			}
		}
		stop()
		if got := rt.Stats()[0]; got.Retried+got.Buried != 0 || b.marks() != 0 {
			t.Errorf("stats %+v, %d marks", got, b.marks())
		}
	})
}

// One trial at a time in a process, or one that kills would pass for many.
func TestOneTrialAtATime(t *testing.T) {
	t.Parallel()
	c := newCourt(Config{HandlerTimeout: time.Hour}.WithDefaults(), nil)
	if !c.sit() || c.sit() {
		t.Error("two trials at a time")
	}
	if c.rise(); !c.sit() {
		t.Error("none after the first")
	}
	stuck := newCourt(Config{HandlerTimeout: time.Nanosecond}, nil)
	if first := stuck.sit(); !first || !stuck.sit() {
		t.Error("a handler that is stuck keeps all others from their trial")
	}
}
