package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// batches declares DELTAS and COMMANDS beside the standard streams, with a
// consumer of each that is a work queue.
func (b *bench) batches() {
	b.tb.Helper()
	b.standard()
	for stream, subject := range map[string]string{"DELTAS": "palimpsest.deltas.>", "COMMANDS": "palimpsest.commands.>"} {
		b.stream(stream, jetstream.WorkQueuePolicy, subject)
		b.consumer(stream, strings.ToLower(stream))
	}
	b.consumer("CANDIDATES", "candidates")
}

// refusing rejects every message except the stand-ins of those that it rejected.
func refusing[In events.Payload](consumer string) Stage {
	return Consume(strings.ToUpper(consumer), consumer, On(func(_ context.Context, in events.Event[In]) ([]events.Payload, error) {
		if c, ok := any(in.Data).(events.CandidatesExtracted); ok && c.Skipped != "" {
			return nil, nil
		}
		return nil, Rejectf("broken", "", "cannot be handled")
	}))
}

func catching[In events.Payload](consumer string, got chan<- In) Stage {
	return Consume(strings.ToUpper(consumer), consumer, On(func(_ context.Context, in events.Event[In]) ([]events.Payload, error) {
		got <- in.Data
		return nil, nil
	}))
}

// buried publishes p to a stage that refuses it, and returns its letter.
func (b *bench) buried(p events.Payload, stage Stage) Letter {
	b.tb.Helper()
	_, stop := b.start(quickConfig(), stage)
	defer stop()
	b.publish(p)
	return b.deadLetters(1)[0]
}

func sample(of scope.Scope, candidates int) events.CandidatesExtracted {
	out := events.CandidatesExtracted{Batch: tick(of, 3).Batch}
	for range candidates {
		out.Candidates = append(out.Candidates, events.Candidate{ID: "c", Text: strings.Repeat("x", 1000)})
	}
	return out
}

// A buried batch of any kind is retried late, and so is one of which the letter
// keeps the first part only: then its range is extracted anew.
func TestEveryRangeIsRetriedLate(t *testing.T) {
	t.Parallel()
	decided := func(candidates int) events.DeltasDecided {
		c := sample(user("ann"), candidates)
		return events.DeltasDecided{Batch: c.Batch, Basis: 7, Candidates: c.Candidates}
	}
	for name, c := range map[string]struct {
		payload events.Payload
		stage   Stage
		clipped bool
	}{
		"tick":             {tick(user("ann"), 3), refusing[events.TickIssued]("ticks"), false},
		"candidates":       {sample(user("ann"), 2), refusing[events.CandidatesExtracted]("candidates"), false},
		"deltas":           {decided(2), refusing[events.DeltasDecided]("deltas"), false},
		"large candidates": {sample(user("ann"), 100), refusing[events.CandidatesExtracted]("candidates"), true},
		"large deltas":     {decided(100), refusing[events.DeltasDecided]("deltas"), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.batches()
			l := b.buried(c.payload, c.stage)
			if l.Truncated != c.clipped {
				t.Fatalf("letter of %d bytes: truncated %v", l.Size, l.Truncated)
			}
			b.purge("CANDIDATES") // of the stand-in
			deadLetters := b.letters()
			if err := deadLetters.Retry(b.context(), l.Sequence); err != nil {
				t.Fatal(err)
			}
			if c.clipped || name == "tick" {
				got := make(chan events.TickIssued, 1)
				b.start(quickConfig(), catching("ticks", got))
				wantLate(t, await(t, got).Batch)
				return
			}
			got := make(chan events.CandidatesExtracted, 1)
			b.start(quickConfig(), catching("candidates", got))
			in := await(t, got)
			wantLate(t, in.Batch)
			if len(in.Candidates) != 2 {
				t.Errorf("%d candidates", len(in.Candidates))
			}
		})
	}
}

func wantLate(t *testing.T, got events.Batch) {
	t.Helper()
	want := tick(user("ann"), 3).Batch
	want.Cause = events.CauseLate
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("retried (-want +got):\n%s", diff)
	}
}

func (b *bench) purge(stream string) {
	b.tb.Helper()
	s, err := b.js.Stream(b.context(), stream)
	if err != nil {
		b.tb.Fatal(err)
	}
	if err := s.Purge(b.context()); err != nil {
		b.tb.Fatal(err)
	}
}

// letter buries by hand.
func (b *bench) letter(l events.MessageBuried) Letter {
	b.tb.Helper()
	l.Scope, l.Service, l.Code, l.Reason = user("ann").Fact(), "worker", "broken", "cannot be handled"
	if l.Size == 0 {
		l.Size = len(l.Data)
	}
	b.publish(l)
	return b.deadLetters(1)[0]
}

// TestDeadLettersThatCannotBeRetried: a retry that is impossible returns the reason,
// and the dead letter stays.
func TestDeadLettersThatCannotBeRetried(t *testing.T) {
	t.Parallel()
	subject := events.Subject(tick(user("ann"), 1))
	command := events.DeltasDecided{Batch: events.Batch{Header: events.Header{Scope: user("ann").Fact()}, Rule: events.RuleCommand}}
	for name, c := range map[string]struct {
		letter events.MessageBuried
		want   error
	}{
		"effect": {events.MessageBuried{MessageKind: events.KindEffectCommitted, Stream: "AUDIT", Sequence: 1, Subject: "palimpsest.audit.p.ann._._", Data: []byte(`{}`)}, ErrCommitted},
		"clipped episode": {events.MessageBuried{
			MessageKind: events.KindEpisodeRecorded, Stream: "EPISODES", Sequence: 9, Subject: events.EpisodeSubject(user("ann")),
			Data: []byte(`{"content": "xx`), Truncated: true, Size: 1 << 20,
		}, ErrClipped},
		"clipped command": {events.MessageBuried{
			MessageKind: events.KindDeltasDecided, Stream: "DELTAS", Sequence: 9, Subject: events.Subject(command),
			Data: mustJSON(t, command), Truncated: true, Size: 1 << 20,
		}, ErrClipped},
		"clipped before its range": {events.MessageBuried{
			MessageKind: events.KindCandidatesExtracted, Stream: "CANDIDATES", Sequence: 9, Subject: subject,
			Data: []byte(`{"scope": {"project": "p"`), Truncated: true, Size: 1 << 20,
		}, ErrClipped},
		"tick that is no JSON": {events.MessageBuried{MessageKind: events.KindTickIssued, Stream: "TICKS", Sequence: 9, Subject: subject, Data: []byte(`{`)}, ErrUnfit},
		"no subject of ours":   {events.MessageBuried{Stream: "TICKS", Sequence: 9, Subject: "palimpsest.ticks", Data: []byte(`{}`)}, ErrUnfit},
		"unknown":              {events.MessageBuried{Stream: "TICKS", Sequence: 9, Subject: subject, Data: []byte(`{}`)}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.batches()
			l := b.letter(c.letter)
			deadLetters := b.letters()
			err := deadLetters.Retry(b.context(), l.Sequence)
			if !errors.Is(err, c.want) {
				t.Errorf("err = %v, want %v", err, c.want)
			}
			if _, err := deadLetters.Show(b.context(), l.Sequence); (c.want == nil) != errors.Is(err, ErrNoLetter) {
				t.Errorf("show: %v", err)
			}
		})
	}
}

func mustJSON(t *testing.T, v any) []byte {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// TestDeadLettersAreSettledOnce: concurrent retries of one dead letter send its
// message once, and later ones do not find it.
func TestDeadLettersAreSettledOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.standard()
	l := b.buried(tick(user("ann"), 3), refusing[events.TickIssued]("ticks"))
	deadLetters := b.letters()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if err := deadLetters.Retry(b.context(), l.Sequence); err != nil && !errors.Is(err, ErrNoLetter) {
				t.Errorf("retry: %v", err)
			}
		})
	}
	wg.Wait()
	stream, err := b.js.Stream(b.context(), "TICKS")
	if err != nil {
		t.Fatal(err)
	}
	if n := stream.CachedInfo().State.Msgs; n != 1 {
		t.Errorf("the tick was sent %d times", n)
	}
	for range 2 {
		if err := deadLetters.Retry(b.context(), l.Sequence); !errors.Is(err, ErrNoLetter) {
			t.Errorf("retry of what is settled: %v", err)
		}
		if err := deadLetters.Drop(b.context(), l.Sequence); !errors.Is(err, ErrNoLetter) {
			t.Errorf("drop of what is settled: %v", err)
		}
	}
	for _, unknown := range []uint64{0, 99} {
		if err := deadLetters.Drop(b.context(), unknown); !errors.Is(err, ErrNoLetter) {
			t.Errorf("drop %d: %v", unknown, err)
		}
	}
	if n, err := deadLetters.Count(b.context()); n != 0 || err != nil {
		t.Errorf("%d letters, %v", n, err)
	}
}

// While what it depends on is still bad, a retried message comes back as another
// letter, each time one.
func TestRetriedInVainIsBuriedAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.standard()
	_, stop := b.start(quickConfig(), refusing[events.TickIssued]("ticks"))
	defer stop()
	b.publish(tick(user("ann"), 3))
	deadLetters := b.letters()
	last := uint64(0)
	for range 3 {
		var next []Letter
		b.eventually("another letter", func() bool {
			var err error
			next, _, err = deadLetters.List(b.context(), LetterFilter{}, last, 10)
			return err == nil && len(next) > 0
		})
		if len(next) != 1 {
			t.Fatalf("%d letters", len(next))
		}
		last = next[0].Sequence
		if err := deadLetters.Retry(b.context(), last); err != nil {
			t.Fatal(err)
		}
	}
}

// A command that is refused, or whose answer no stream can take, leaves a batch
// that tells its caller so, and nothing behind it stalls.
func TestBuriedCommandHasAStandIn(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]struct {
		code string
		size int
	}{"refused": {code: "broken"}, "too large": {code: events.CodeTooLarge, size: 2 << 20}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.batches()
			got, rest := make(chan events.DeltasDecided, 2), make(chan string, 2)
			b.start(quickConfig(), catching("deltas", got), Consume("COMMANDS", "commands", On(func(_ context.Context, in events.Event[events.CommandRequested]) ([]events.Payload, error) {
				switch {
				case in.Data.RequestID == "next":
					rest <- in.Data.RequestID
					return nil, nil
				case answer.size == 0:
					return nil, Rejectf(answer.code, "fact_id", "cannot be done")
				}
				huge := events.DeltasDecided{Batch: events.Batch{Header: in.Data.Header}, Command: &in.Data.CommandRef}
				huge.Candidates = []events.Candidate{{ID: "c", Text: strings.Repeat("x", answer.size)}}
				return []events.Payload{huge}, nil
			})))
			command := events.CommandRequested{
				Header: events.Header{Scope: user("ann").Fact()}, Actor: "api:test", FactID: "f", At: time.Now(),
				CommandRef: events.CommandRef{RequestID: "r", Op: events.OpDelete, IfMatch: map[string]uint64{"f": 1}},
			}
			b.publish(command)
			command.RequestID = "next"
			b.publish(command)
			if in := await(t, got); in.Command == nil || in.Command.RequestID != "r" || !strings.HasPrefix(in.Skipped, answer.code+": ") || len(in.Command.IfMatch) > 0 {
				t.Errorf("stand-in %+v", in)
			}
			await(t, rest)
			b.deadLetters(1)
		})
	}
}

// A plain message that carries its own id is known by it: as long as the stream
// remembers the one that was refused, it says so and keeps the letter.
func TestRetryOfARememberedMessage(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.standard()
	stream, err := b.js.Stream(b.context(), "EPISODES")
	if err != nil {
		t.Fatal(err)
	}
	cfg := stream.CachedInfo().Config
	cfg.Duplicates = time.Minute
	if _, err := b.js.UpdateStream(b.context(), cfg); err != nil {
		t.Fatal(err)
	}
	_, stop := b.start(quickConfig(), refusing[events.EpisodeRecorded]("episodes"))
	defer stop()
	msg := &nats.Msg{Subject: events.EpisodeSubject(user("ann")), Data: []byte(`{"content": "x"}`), Header: nats.Header{jetstream.MsgIDHeader: {"1"}}}
	if _, err := b.js.PublishMsg(b.context(), msg); err != nil {
		t.Fatal(err)
	}
	l := b.deadLetters(1)[0]
	if err := b.letters().Retry(b.context(), l.Sequence); !errors.Is(err, ErrRemembered) {
		t.Errorf("err = %v", err)
	}
	b.deadLetters(1)
}
