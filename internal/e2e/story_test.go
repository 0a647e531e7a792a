package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"palimpsest/internal/broker"
	"palimpsest/internal/memory"
	"palimpsest/pkg/api"
	"palimpsest/pkg/client"
	"palimpsest/pkg/events"
)

// story is all that one user and those who act for them do, so that every stage
// has something to do: each step can be repeated until it is acknowledged.
type story struct {
	*script
	steps []func(ctx context.Context, i *process) error
	done  int // steps that are acknowledged
}

func newStory(user string) *story {
	s := &story{script: &script{who: person(user), turns: []string{
		"I live in Oslo.", "My favourite colour is green.", "I like Python.", "I live in Oslo.",
		"I moved to Bergen.", "I no longer like Python.", "My sister Ann lives in Perth.", "Thanks.",
	}}}
	for n := range s.turns {
		s.step(func(ctx context.Context, i *process) error { return s.say(ctx, i, n) })
	}
	for n := range 2 {
		s.step(func(ctx context.Context, i *process) error { return s.poison(ctx, i, n) })
	}
	s.step(s.post, s.end)
	for n := range 2 {
		s.step(func(ctx context.Context, i *process) error { return s.remember(ctx, i, n) })
	}
	for n := range 2 {
		s.step(func(ctx context.Context, i *process) error { return s.strangeTick(ctx, i, n) })
	}
	return s
}

func (s *story) step(do ...func(context.Context, *process) error) { s.steps = append(s.steps, do...) }

// live takes the steps that are left, and returns the error of the first that is
// not acknowledged.
func (s *story) live(ctx context.Context, i *process) error {
	for ; s.done < len(s.steps); s.done++ {
		if err := s.steps[s.done](ctx, i); err != nil {
			return fmt.Errorf("%s, step %d: %w", s.who.User, s.done, err)
		}
	}
	return nil
}

// say publishes a turn; the session changes twice.
func (s *story) say(ctx context.Context, i *process, n int) error {
	msg, err := s.message(n)
	if err != nil {
		return err
	}
	on := s.who
	if n%4 > 1 {
		on.Session = "s2"
	}
	msg.Subject = events.EpisodeSubject(on)
	_, err = i.js.PublishMsg(ctx, msg)
	return err
}

// poison publishes a message that every reader refuses.
func (s *story) poison(ctx context.Context, i *process, n int) error {
	msg := nats.NewMsg(events.EpisodeSubject(s.who))
	msg.Data = []byte(`{"content": "hi", "role": "boss"}`)
	msg.Header.Set(nats.MsgIdHdr, fmt.Sprintf("bad-%d", n))
	_, err := i.js.PublishMsg(ctx, msg)
	return err
}

const posted = "I work at Fenwick Labs."

// post says one thing over HTTP.
func (s *story) post(ctx context.Context, i *process) error {
	at, err := json.Marshal(time.Date(2025, 3, 1, 10, 0, 0, 0, time.UTC))
	if err != nil {
		return err
	}
	said := api.Message{ID: "posted", Content: posted, Timestamp: at}
	_, err = i.api.Record(ctx, api.Record{Scope: api.ScopeOf(s.who), Messages: api.Messages{said}}, "post "+s.who.User)
	return err
}

// end ends the session in which all was said last.
func (s *story) end(ctx context.Context, i *process) error {
	subject, head, body, err := events.Encode(events.Meta{ID: "end", Source: "test"},
		events.SessionEnded{Scope: s.who, Cause: events.EndExplicit})
	if err != nil {
		return err
	}
	_, err = i.js.PublishMsg(ctx, &nats.Msg{Subject: subject, Header: head, Data: body})
	return err
}

// remember states a fact.
func (s *story) remember(ctx context.Context, i *process, n int) error {
	at := time.Date(2025, 3, 2, 9, n, 0, 0, time.UTC)
	_, err := i.api.Remember(ctx, api.Remember{
		Scope: api.Scope{User: s.who.User}, Text: fmt.Sprintf("Locker %d is blue.", n), EventTime: &at,
	}, fmt.Sprintf("remember %d of %s", n, s.who.User))
	return err
}

// strangeTick asks for an unknown rule, as a scheduler of another
// version might: the tick is buried, and its range skipped.
func (s *story) strangeTick(ctx context.Context, i *process, n int) error {
	if err := s.stored(ctx, i); err != nil {
		return err
	}
	at, err := broker.Endpoint(filepath.Join(i.data, "nats"))
	if err != nil {
		return err
	}
	conn, err := broker.Connect(ctx, at)
	if err != nil {
		return err
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		return err
	}
	subject, head, body, err := events.Encode(events.Meta{ID: fmt.Sprintf("strange-%d", n), Source: "test"}, events.TickIssued{
		Batch: events.Batch{
			Header: events.Header{Scope: s.who.Fact()}, Rule: fmt.Sprintf("strange-%d", n),
			Range: events.Range{To: 1}, Cause: events.CauseEvery,
		},
	})
	if err != nil {
		return err
	}
	_, err = js.PublishMsg(ctx, &nats.Msg{Subject: subject, Header: head, Data: body})
	return err
}

// stored waits for the first episode: no scheduler speaks of a range before.
func (s *story) stored(ctx context.Context, i *process) error {
	for {
		page, err := i.api.Recent(ctx, of(s.who), client.ListEpisodes{Limit: 1})
		if err != nil || len(page.Episodes) > 0 {
			return err
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// read searches, which leaves a trace where facts are found.
func (s *story) read(ctx context.Context, i *process) {
	_, _ = i.api.Search(ctx, api.Search{Selector: api.Selector{User: &s.who.User}, Text: "Oslo, Bergen, colours"})
}

// lived waits until nothing of the story is under way any more.
func (s *story) lived(i *process) {
	i.t.Helper()
	sel := of(s.who)
	n := len(s.turns) + 1
	i.settledBy("turn", sel, n)
	i.settledBy("sleep", sel, n)
	eventually(i.t, "everything of "+s.who.User, func() error {
		by := map[string]int{}
		for _, e := range i.effects(sel) {
			by[e.Rule]++
		}
		if by[memory.RuleCommand] != 2 || by["strange-0"] != 1 || by["strange-1"] != 1 {
			return fmt.Errorf("effects by rule: %v", by)
		}
		return nil
	})
}

// wantSame holds what a story left in one run against what it left in another.
func (s *story) wantSame(t *testing.T, calm, got *process) {
	t.Helper()
	sel := of(s.who)
	want := append(s.turns[:len(s.turns):len(s.turns)], posted)
	said := got.recent(sel)
	for n := range len(said) / 2 {
		said[n], said[len(said)-1-n] = said[len(said)-1-n], said[n]
	}
	if diff := cmp.Diff(want, contents(said)); diff != "" {
		t.Errorf("%s: what was said (-said +stored):\n%s", s.who.User, diff)
	}
	if diff := cmp.Diff(calm.export(sel, true), got.export(sel, true)); diff != "" {
		t.Errorf("%s: what is known (-undisturbed +killed):\n%s", s.who.User, diff)
	}
}
