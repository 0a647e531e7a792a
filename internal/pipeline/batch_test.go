package pipeline

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"palimpsest/pkg/events"
)

func batchStage(h BatchHandler[events.EpisodeRecorded]) Stage {
	return ConsumeBatch("episodes", 100, 200*time.Millisecond, h)
}

func TestBatchBisectsToTheOneBadEvent(t *testing.T) {
	t.Parallel()
	for _, fault := range []string{"reject", "panic"} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.standard()
			for i := range 60 {
				b.say(user("ann"), fmt.Sprintf("%02d", i))
			}
			var mu sync.Mutex
			done := map[string]int{}
			_, stop := b.start(quickConfig(), batchStage(func(_ context.Context, in []episode) error {
				for i, e := range in {
					if i > 0 && e.Sequence < in[i-1].Sequence {
						t.Errorf("%d after %d", e.Sequence, in[i-1].Sequence)
					}
					if e.ID != "37" {
						continue
					}
					if fault == "panic" {
						panic("37")
					}
					return Rejectf("bad", "content", "is 37")
				}
				mu.Lock()
				defer mu.Unlock()
				for _, e := range in {
					done[e.ID]++
				}
				return nil
			}))
			l := b.deadLetters(1)[0]
			b.settled("EPISODES", "episodes")
			stop()
			if l.CausationID != "37" {
				t.Errorf("letter %+v", l)
			}
			if len(done) != 59 || done["37"] != 0 {
				t.Errorf("%d done", len(done))
			}
		})
	}
}

func TestBatchWaitsForAnOutageToEnd(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.standard()
	for i := range 10 {
		b.say(user("ann"), fmt.Sprint(i))
	}
	calls := 0
	_, stop := b.start(quickConfig(), batchStage(func(context.Context, []episode) error {
		if calls++; calls < 60 {
			return errors.New("log is down")
		}
		return nil
	}))
	b.settled("EPISODES", "episodes")
	stop()
	b.deadLetters(0)
}

func TestBatchBuriesWhatItCannotDecode(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.standard()
	if _, err := b.js.Publish(b.context(), "palimpsest.episodes.p.ann._._", []byte("{")); err != nil {
		t.Fatal(err)
	}
	b.say(user("ann"), "fine")
	got := make(chan int, 10)
	b.start(quickConfig(), batchStage(func(_ context.Context, in []episode) error {
		got <- len(in)
		return nil
	}))
	if n := await(t, got); n != 1 {
		t.Errorf("%d events", n)
	}
	b.deadLetters(1)
	b.settled("EPISODES", "episodes")
}

func TestClockRunsAtStartAtIntervalsAndWhenWoken(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.standard()
	wake := make(chan struct{}, 1)
	ran := make(chan time.Time, 100)
	runs := 0
	rt, stop := b.start(quickConfig(),
		Clock("slow", time.Hour, wake, func(_ context.Context, now time.Time) ([]events.Payload, error) {
			ran <- now
			if runs++; runs == 2 {
				panic("clockwork")
			}
			return []events.Payload{tick(user("ann"), 5)}, nil
		}),
		Clock("quick", 5*time.Millisecond, nil, func(context.Context, time.Time) ([]events.Payload, error) { return nil, nil }),
	)
	await(t, ran)
	wake <- struct{}{}
	await(t, ran)
	await(t, ran) // after the panic
	b.eventually("quick clock ran", func() bool { stats := rt.Stats(); return len(stats) > 1 && stats[1].Handled > 3 })
	stop()
	if got := rt.Stats()[0]; got.Handled != 2 || got.Panics != 1 {
		t.Errorf("stats %+v", got)
	}
	stream, err := b.js.Stream(b.context(), "TICKS")
	if err != nil {
		t.Fatal(err)
	}
	if msgs := stream.CachedInfo().State.Msgs; msgs != 1 {
		t.Errorf("%d ticks: two runs that agree must publish one id", msgs)
	}
}
