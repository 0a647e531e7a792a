package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// script is what one user says, in order, with ids and times of its own, so
// that two runs of it can be compared.
type script struct {
	who   scope.Scope
	turns []string
	next  int // the first that is not acknowledged
}

func scripts(users, turns int) []*script {
	says := []string{
		"I live in %s.", "My favourite colour is green, number %[2]d.", "I moved to %s.", "I like %s a lot.",
		"My sister Ann lives in %s.", "I no longer live in %s.", "What is the weather in %s?", "I work at %s Labs.",
	}
	places := []string{"Oslo", "Bergen", "Lisbon", "Quito", "Hanoi", "Tunis", "Perth"}
	out := make([]*script, users)
	for u := range out {
		s := &script{who: person(fmt.Sprintf("user %d", u))}
		for n := range turns {
			s.turns = append(s.turns, fmt.Sprintf(says[(n+u)%len(says)]+"%.0[2]d%.0[1]s", places[(3*n+u)%len(places)], n))
		}
		out[u] = s
	}
	return out
}

// scripts are those of so many of the tenant's users.
func (i *instance) scripts(users, turns int) []*script {
	out := scripts(users, turns)
	for _, s := range out {
		s.who.Project = i.whole().Project
	}
	return out
}

// message is one turn as it is published; it is the same whenever it is.
func (s *script) message(n int) (*nats.Msg, error) {
	body, err := json.Marshal(map[string]any{
		"role": "user", "content": s.turns[n],
		"timestamp": time.Date(2025, 3, 1, 9, n, 0, 0, time.UTC),
	})
	msg := nats.NewMsg(events.EpisodeSubject(s.who))
	msg.Data = body
	msg.Header.Set(nats.MsgIdHdr, fmt.Sprintf("%s-%s-%d", s.who.Project, s.who.User, n)) // all tenants share the stream's memory for ids
	return msg, err
}

// tell publishes what is left of the script, and returns where one is refused.
func (s *script) tell(ctx context.Context, i *instance, acknowledged chan<- struct{}) error {
	for ; s.next < len(s.turns); s.next++ {
		msg, err := s.message(s.next)
		if err != nil {
			return err
		}
		if _, err := i.js.PublishMsg(ctx, msg); err != nil {
			return err
		}
		select {
		case acknowledged <- struct{}{}:
		default:
		}
	}
	return nil
}

// tellAll publishes every script at once. It calls cut after that many
// acknowledgements, at a random moment; 0 is the end.
func (i *instance) tellAll(all []*script, after int, cut func()) {
	i.t.Helper()
	ctx, cancel := context.WithCancel(i.t.Context())
	defer cancel()
	acknowledged := make(chan struct{}, 4096)
	var wait sync.WaitGroup
	errs := make(chan error, len(all))
	for _, s := range all {
		wait.Go(func() { errs <- s.tell(ctx, i, acknowledged) })
	}
	if after > 0 {
		for range after {
			select {
			case <-acknowledged:
			case <-time.After(patience):
				i.t.Errorf("no acknowledgement within %v", patience)
			}
		}
		cut()
		cancel()
	}
	wait.Wait()
	for range all {
		if err := <-errs; err != nil && after == 0 {
			i.t.Fatal(err)
		}
	}
}
