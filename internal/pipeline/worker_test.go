package pipeline

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

type episode = events.Event[events.EpisodeRecorded]

func onEpisode(h func(context.Context, episode) ([]events.Payload, error)) Stage {
	return Consume("EPISODES", "episodes", On(h))
}

func TestHandledMessagesAreFollowedAndAcked(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.standard()
	rt, stop := b.start(quickConfig(), onEpisode(func(_ context.Context, in episode) ([]events.Payload, error) {
		h := events.Header{Scope: in.Scope.Fact()}
		return []events.Payload{
			events.EpisodeStored{Header: h, EpisodeID: in.ID, LastOrdinal: 1, StoredAt: in.Time},
			events.EpisodeStored{Header: h, EpisodeID: in.ID, LastOrdinal: 2, StoredAt: in.Time},
			tick(in.Scope, 7),
		}, nil
	}))
	b.say(user("ann"), "hello")
	b.settled("EPISODES", "episodes")
	stream, _ := b.js.Stream(b.context(), "STORED")
	msg, err := stream.GetMsg(b.context(), 2)
	if err != nil {
		t.Fatal(err)
	}
	meta, _, err := events.Decode(events.Raw{Subject: msg.Subject, Header: msg.Header, Body: msg.Data, Time: msg.Time})
	if err != nil {
		t.Fatal(err)
	}
	if want := events.HashID("hello", string(events.KindEpisodeStored), "1"); meta.ID != want {
		t.Errorf("id %s, want %s", meta.ID, want)
	}
	if meta.CausationID != "hello" || meta.CorrelationID != "hello" || meta.Source != "palimpsest/worker" {
		t.Errorf("meta %+v", meta)
	}
	stop()
	if got := rt.Stats()[0]; got.Handled != 1 || got.Retried != 0 || got.InFlight != 0 {
		t.Errorf("stats %+v", got)
	}
}

func TestFailingMessageIsBuriedOnceOthersGetThrough(t *testing.T) {
	t.Parallel()
	for _, fault := range []string{"error", "panic"} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.standard()
			rt, stop := b.start(quickConfig(), onEpisode(func(_ context.Context, in episode) ([]events.Payload, error) {
				switch {
				case in.ID != "bad":
					return nil, nil
				case fault == "panic":
					panic("ouch")
				}
				return nil, fmt.Errorf("handle: %w", errors.New("ouch"))
			}))
			b.say(user("ann"), "bad")
			good := uint64(0)
			b.eventually("buried", func() bool {
				good++
				b.say(user("ann"), fmt.Sprintf("good %d", good))
				stats := rt.Stats()
				return len(stats) > 0 && stats[0].Buried == 1
			})
			l := b.deadLetters(1)[0]
			if l.Code != events.CodePoison || l.Attempts < 20 || l.CausationID != "bad" {
				t.Errorf("letter %+v", l)
			}
			b.settled("EPISODES", "episodes")
			stop()
			got := rt.Stats()[0]
			if got.Buried != 1 || got.Handled != good || (got.Panics > 0) != (fault == "panic") {
				t.Errorf("stats %+v", got)
			}
		})
	}
}

// An outage must not cost messages: while nothing gets through they wait,
// however often they are tried.
func TestOutageBuriesNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.standard()
	var down atomic.Bool
	down.Store(true)
	tries := make(chan struct{}, 10_000)
	_, stop := b.start(quickConfig(), onEpisode(func(context.Context, episode) ([]events.Payload, error) {
		select {
		case tries <- struct{}{}:
		default:
		}
		if down.Load() {
			return nil, errors.New("store: connection refused")
		}
		return nil, nil
	}))
	for i := range 5 {
		b.say(user("ann"), fmt.Sprint(i))
	}
	for range 5 * 40 {
		await(t, tries)
	}
	down.Store(false)
	b.settled("EPISODES", "episodes")
	stop()
	b.deadLetters(0)
}

func TestUndecodableMessagesAreBuried(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.standard()
	_, stop := b.start(quickConfig(), onEpisode(func(context.Context, episode) ([]events.Payload, error) { return nil, nil }))
	publish := func(subject string, header nats.Header, body []byte) {
		t.Helper()
		if _, err := b.js.PublishMsg(b.context(), &nats.Msg{Subject: subject, Header: header, Data: body}); err != nil {
			t.Fatal(err)
		}
	}
	garbage := bytes.Repeat([]byte{0xff, 0x00, 'x', '{'}, 1<<18)[:1<<20-200]
	publish("palimpsest.episodes.p.ann._._", nil, garbage)
	publish("palimpsest.episodes.p.ann._._", nil, []byte("{\"content\":\"\xff\xfe\",\"role\":\"user\"}"))
	publish("palimpsest.episodes.p._._._", nil, []byte(`{"content":"whose?"}`))
	publish("palimpsest.episodes._._._._", nil, []byte(`{"content":"whose?"}`))
	publish("palimpsest.episodes.P.%41lice.%zz.ü", nil, []byte(`{}`))
	publish("palimpsest.episodes.p.ann._._", nats.Header{"Ce-Specversion": {"9"}, "Ce-Id": {"\xff"}, "X": {string(garbage[:40_000])}}, []byte(`{}`))
	deadLetters := b.deadLetters(6)
	slices.SortFunc(deadLetters, func(x, y Letter) int { return cmp.Compare(x.MessageBuried.Sequence, y.MessageBuried.Sequence) })
	b.settled("EPISODES", "episodes")
	stop()
	if l := deadLetters[0]; !l.Truncated || l.Size != len(garbage) || !bytes.Equal(l.Data, garbage[:4096]) || l.Scope.User != "ann" {
		t.Errorf("garbage: truncated %v, size %d, %d bytes of data, scope %v", l.Truncated, l.Size, len(l.Data), l.Scope)
	}
	for i, code := range []string{events.CodeMalformed, "", events.CodeScopeMissing, "", events.CodeSubjectToken, events.CodeMalformed} {
		if l := deadLetters[i]; code != "" && l.Code != code {
			t.Errorf("letter %d: code %s (%s: %s), want %s", i, l.Code, l.Field, l.Reason, code)
		}
		if deadLetters[i].ID != letterID("EPISODES", uint64(i+1), "worker") {
			t.Errorf("letter %d: id %s", i, deadLetters[i].ID)
		}
	}
}

func TestUnknownKindWaitsAndIsThenBuried(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.standard()
	cfg := quickConfig()
	cfg.UnknownGrace = 2 * time.Second // a busy machine takes its time to the first try
	rt, stop := b.start(cfg, onEpisode(func(context.Context, episode) ([]events.Payload, error) { return nil, nil }))
	b.publish(events.SessionEnded{Scope: user("ann"), Cause: events.EndExplicit})
	l := b.deadLetters(1)[0]
	stop()
	if l.Code != events.CodeUnknownKind || rt.Stats()[0].Retried == 0 {
		t.Errorf("letter %+v, stats %+v", l, rt.Stats())
	}
}

func TestBuriedRangesAreSkipped(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.standard()
	_, stop := b.start(quickConfig(), Consume("TICKS", "ticks", On(func(context.Context, events.Event[events.TickIssued]) ([]events.Payload, error) {
		return nil, Rejectf("bad_rule", "rule", "no such rule")
	})))
	b.publish(tick(user("ann"), 3))
	l := b.deadLetters(1)[0]
	b.settled("TICKS", "ticks")
	stop()
	if l.Code != "bad_rule" || l.Field != "rule" || l.MessageKind != events.KindTickIssued {
		t.Errorf("letter %+v", l)
	}
	in := lastCandidates(t, b)
	if in.Range.To != 3 || in.Skipped == "" || len(in.Candidates) != 0 {
		t.Errorf("stand-in %+v", in)
	}
}

func lastCandidates(t *testing.T, b *bench) events.CandidatesExtracted {
	t.Helper()
	stream, err := b.js.Stream(b.context(), "CANDIDATES")
	if err != nil {
		t.Fatal(err)
	}
	msg, err := stream.GetLastMsgForSubject(b.context(), "palimpsest.candidates.>")
	if err != nil {
		t.Fatal(err)
	}
	meta, data, err := events.Decode(events.Raw{Subject: msg.Subject, Header: msg.Header, Body: msg.Data, Time: msg.Time})
	if err != nil {
		t.Fatal(err)
	}
	in, err := events.DecodeData[events.CandidatesExtracted](meta, data)
	if err != nil {
		t.Fatal(err)
	}
	return in.Data
}

// A letter that cannot be published must leave its message where it is.
func TestNothingIsLostWhereBuryingFails(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.standard()
	if err := b.js.DeleteStream(b.context(), "DEADLETTER"); err != nil {
		t.Fatal(err)
	}
	seen := make(chan struct{}, 1000)
	b.start(quickConfig(), onEpisode(func(context.Context, episode) ([]events.Payload, error) {
		seen <- struct{}{}
		return nil, Rejectf("no", "", "never")
	}))
	b.say(user("ann"), "x")
	await(t, seen)
	await(t, seen)
	b.stream("DEADLETTER", 0, "palimpsest.deadletter.>")
	b.deadLetters(1)
	b.settled("EPISODES", "episodes")
}

// TestP7TroubleOfOneTenantTakesNoSlotOfAnother: more messages of one project than the
// stage holds fail for as long as its trouble lasts. Those of another project are
// handled meanwhile, and none is buried.
func TestP7TroubleOfOneTenantTakesNoSlotOfAnother(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.standard()
	var down atomic.Bool
	down.Store(true)
	cfg := quickConfig()
	cfg.Concurrency, cfg.RetryMax = 8, 50*time.Millisecond
	passed := make(chan string, 1000)
	_, stop := b.start(cfg, Consume("TICKS", "ticks", On(func(_ context.Context, in events.Event[events.TickIssued]) ([]events.Payload, error) {
		if in.Scope.Project == "troubled" && down.Load() {
			return nil, errors.New("its model is down")
		}
		passed <- in.Scope.Project
		return nil, nil
	})))
	const troubled = 100
	for i := range troubled {
		b.publish(tickOf(scope.Scope{Project: "troubled", User: fmt.Sprint(i)}, "turn"))
	}
	stream, err := b.js.Stream(b.context(), "TICKS")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		b.publish(tickOf(scope.Scope{Project: "calm", User: fmt.Sprint(i)}, "turn"))
		if project := await(t, passed); project != "calm" {
			t.Errorf("handled a tick of %s", project)
		}
	}
	// Long after the deliveries of a poison message, nothing is lost.
	b.eventually("copies went back to the stream", func() bool {
		info, err := stream.Info(b.context())
		return err == nil && info.State.LastSeq > troubled+40
	})
	down.Store(false)
	for range troubled {
		if project := await(t, passed); project != "troubled" {
			t.Errorf("handled a tick of %s", project)
		}
	}
	b.eventually("the queue is empty", func() bool {
		info, err := stream.Info(b.context())
		return err == nil && info.State.Msgs == 0
	})
	stop()
	b.deadLetters(0)
}

// TestHandlersSeeNoDeadline: the JetStream client bounds a request of a handler only
// where the context has no deadline. The context ends all the same.
func TestHandlersSeeNoDeadline(t *testing.T) {
	t.Parallel()
	rt := &Runtime{cfg: Config{HandlerTimeout: time.Nanosecond}.WithDefaults()}
	err := rt.call(t.Context(), func(ctx context.Context) error {
		if at, dated := ctx.Deadline(); dated {
			t.Errorf("the deadline is %v", at)
		}
		below, cancel := context.WithCancel(ctx)
		defer cancel()
		<-below.Done()
		return below.Err()
	})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v, want %v", err, context.DeadlineExceeded)
	}
}
