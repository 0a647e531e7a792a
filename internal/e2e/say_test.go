package e2e

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"

	"palimpsest/pkg/api"
	"palimpsest/pkg/client"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// turn is one message of a conversation; "user: …" unless it names a role.
type turn string

func (s turn) split() (role, content string) {
	for _, r := range []string{"user", "assistant", "system", "tool"} {
		if rest, ok := strings.CutPrefix(string(s), r+": "); ok {
			return r, rest
		}
	}
	return "user", string(s)
}

func person(user string) scope.Scope {
	return scope.Scope{Project: scope.DefaultProject, User: user, Agent: "assistant", Session: "s1"}
}

// say publishes turns in order with a bare NATS client, each acknowledged by
// the stream before the next.
func (i *instance) say(who scope.Scope, turns ...turn) {
	i.t.Helper()
	for _, said := range turns {
		role, content := said.split()
		i.publish(who, "", map[string]any{"role": role, "content": content})
	}
}

// publish publishes one plain message and returns its stream sequence.
func (i *instance) publish(who scope.Scope, id string, body map[string]any) uint64 {
	i.t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		i.t.Fatal(err)
	}
	msg := nats.NewMsg(events.EpisodeSubject(who))
	msg.Data = text
	if id != "" {
		msg.Header.Set(nats.MsgIdHdr, id)
	}
	ack, err := i.js.PublishMsg(i.t.Context(), msg)
	if err != nil {
		i.t.Fatalf("publish %s: %v", msg.Subject, err)
	}
	return ack.Sequence
}

// record publishes one message in an envelope of CloudEvents.
func (i *instance) record(who scope.Scope, id, content string) {
	i.t.Helper()
	i.envelope(id, events.EpisodeRecorded{Scope: who, Role: events.RoleUser, Content: content})
}

// envelope publishes a payload as a CloudEvent.
func (i *instance) envelope(id string, p events.Payload) {
	i.t.Helper()
	subject, head, body, err := events.Encode(events.Meta{ID: id, Source: "test"}, p)
	if err != nil {
		i.t.Fatal(err)
	}
	if _, err := i.js.PublishMsg(i.t.Context(), &nats.Msg{Subject: subject, Header: head, Data: body}); err != nil {
		i.t.Fatal(err)
	}
}

// settled waits until every rule that runs on each episode has consolidated
// the given number of episodes of a scope, and nothing is pending.
func (i *instance) settled(sel scope.Selector, episodes int) api.Account {
	i.t.Helper()
	return i.settledBy("turn", sel, episodes)
}

// settledBy is settled for one rule.
func (i *instance) settledBy(rule string, sel scope.Selector, episodes int) (total api.Account) {
	i.t.Helper()
	if episodes == 0 {
		return total
	}
	eventually(i.t, fmt.Sprintf("%d episodes of %s consolidated by %s", episodes, sel, rule), func() error {
		l, err := i.project(sel).Ledger(i.t.Context(), sel, false)
		if err != nil {
			return err
		}
		if !l.Balanced {
			return fmt.Errorf("the ledger does not balance: %+v", l.Totals)
		}
		for _, total = range l.Totals {
			if total.Rule == rule && total.Accepted == uint64(episodes) && total.Pending == 0 {
				return nil
			}
		}
		return fmt.Errorf("ledger: %+v", l.Totals)
	})
	return total
}

// project is a client of the selector's tenant.
func (i *instance) project(sel scope.Selector) *client.Client {
	i.t.Helper()
	c, err := client.New(i.HTTP, client.Project(sel.Project))
	if err != nil {
		i.t.Fatal(err)
	}
	return c
}

// facts lists what is valid of a scope.
func (i *instance) facts(sel scope.Selector) []api.Fact {
	i.t.Helper()
	page, err := i.project(sel).Facts(i.t.Context(), sel, client.ListFacts{Limit: 1000})
	if err != nil {
		i.t.Fatal(err)
	}
	return page.Facts
}

func texts(facts []api.Fact) []string {
	out := make([]string, len(facts))
	for n, f := range facts {
		out[n] = f.Text
	}
	return out
}
