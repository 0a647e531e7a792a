package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"palimpsest/pkg/api"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

func wantProblem(t *testing.T, what string, err error, status int, code string) {
	t.Helper()
	var p *api.Problem
	if !errors.As(err, &p) || p.Status != status || p.Code != code {
		t.Errorf("%s: want %d %s, got %v", what, status, code, err)
	}
}

// bad is an invalid event and its required answer.
type bad struct {
	subject     string
	header      nats.Header
	body        string
	code, field string
}

func (i *instance) badEvents() []bad {
	good := events.EpisodeSubject(i.person("ann"))
	illegal := func(token, instead string) string { return strings.Replace(good, token, instead, 1) }
	cloud := func(name, value string) nats.Header {
		h := nats.Header{"ce-specversion": {"1.0"}, "ce-type": {"palimpsest.episode.recorded.v1"}, "ce-source": {"test"}, "ce-id": {"1"}}
		if value == "" {
			delete(h, name)
		} else {
			h[name] = []string{value}
		}
		return h
	}
	const ok = `{"role": "user", "content": "x"}`
	return []bad{
		{good, nil, `hello`, events.CodeMalformed, "data"},
		{good, nil, ``, events.CodeMalformed, "data"},
		{good, nil, `{"content": "x"`, events.CodeMalformed, "data"},
		{good, nil, `{"content": "x"} {}`, events.CodeMalformed, "data"},
		{good, nil, `["content"]`, "", "data"},
		{good, nil, `{}`, events.CodeInvalidField, "content"},
		{good, nil, `{"content": 7}`, events.CodeInvalidField, "content"},
		{good, nil, `{"content": "x", "content": "y"}`, "", "content"},
		{good, nil, `{"content": "x", "role": "boss"}`, events.CodeInvalidField, "role"},
		{good, nil, `{"content": "x", "timestamp": "yesterday"}`, events.CodeInvalidField, "timestamp"},
		{good, nil, `{"content": "x", "metadata": []}`, events.CodeInvalidField, "metadata"},
		{good, nil, `{"content": "x", "metadata": {"intent": "forget"}}`, events.CodeInvalidField, "metadata.intent"},
		{good, nil, `{"content": "x", "metadata": {"tz": "Mars/Olympus"}}`, events.CodeInvalidField, "metadata.tz"},
		{good, nil, `{"content": "x", "mode": "incognito"}`, events.CodeInvalidField, "mode"},
		{good, nil, `{"content": "x", "request": "yes"}`, events.CodeInvalidField, "request"},
		{good, nil, "{\"content\": \"\xff\xfe\"}", "", ""},
		{good, nil, `{"content": "` + strings.Repeat("x", 1<<20) + `"}`, events.CodeTooLarge, "content"},
		{good, nil, `{"content": "x", "metadata": {"m": "` + strings.Repeat("x", 17<<10) + `"}}`, events.CodeTooLarge, "metadata"},
		{events.EpisodeSubject(scope.Scope{Project: i.tenant}), nil, ok, events.CodeScopeMissing, ""},
		{"palimpsest.episodes._.ann._._", nil, ok, "", "project"},
		{illegal(".ann.", ".Ann."), nil, ok, events.CodeSubjectToken, "user"},
		{illegal(".assistant.", ".%61."), nil, ok, events.CodeSubjectToken, "agent"},
		{good, cloud("ce-id", ""), ok, "", "id"},
		{good, cloud("ce-source", ""), ok, "", "source"},
		{good, cloud("ce-specversion", "0.3"), ok, "", "specversion"},
		{good, cloud("ce-type", "com.example.said"), ok, events.CodeInvalidField, "type"},
		{good, cloud("ce-subject", "/user/ben/"), ok, events.CodeInvalidField, "subject"},
		{good, cloud("ce-time", "noon"), ok, "", "time"},
	}
}

// badInputIsAnswered hides bad events among many good ones, of the same and of
// other users: each bad one is a dead letter that names what is wrong with it, and
// every good one is stored.
func badInputIsAnswered(t *testing.T, i *instance) {
	const users = 9
	js, err := jetstream.New(i.conn, jetstream.WithPublishAsyncMaxPending(256))
	if err != nil {
		t.Fatal(err)
	}
	bads := i.badEvents()
	wanted := map[uint64]bad{}
	said := map[string]int{}
	for n, next := 0, 0; n < many; n++ {
		if n%(many/len(bads)) == 10 && next < len(bads) {
			b := bads[next]
			next++
			ack, err := js.PublishMsg(t.Context(), &nats.Msg{Subject: b.subject, Header: b.header, Data: []byte(b.body)})
			if err != nil {
				t.Fatalf("%.60s: %v", b.body, err)
			}
			wanted[ack.Sequence] = b
		}
		who := i.person(fmt.Sprintf("user%d", n%users))
		if n%users == 0 {
			who = i.person("ann") // whom the bad ones name as well
		}
		said[who.User]++
		i.publishAsync(js, who, fmt.Sprintf("message %d: hello", n))
	}
	select {
	case <-js.PublishAsyncComplete():
	case <-time.After(patience):
		t.Fatal("not everything was acknowledged")
	}
	for user, n := range said {
		i.settled(of(i.person(user)), n)
	}
	i.answered(wanted)
	if got := len(i.recent(i.whole())); got != many {
		t.Errorf("%d of %d good events are stored", got, many)
	}
}

func (i *instance) publishAsync(js jetstream.JetStream, who scope.Scope, content string) {
	i.t.Helper()
	body, err := json.Marshal(map[string]any{"content": content})
	if err != nil {
		i.t.Fatal(err)
	}
	if _, err := js.PublishAsync(events.EpisodeSubject(who), body, jetstream.WithStallWait(patience)); err != nil {
		i.t.Fatal(err)
	}
}

// answered checks that there is a dead letter for each bad event, and no other.
func (i *instance) answered(wanted map[uint64]bad) {
	i.t.Helper()
	everybody := i.as(i.t, "") // a letter whose project could not be read is no tenant's
	var letters []api.DeadLetter
	eventually(i.t, fmt.Sprintf("%d dead letters", len(wanted)), func() error {
		letters = slices.DeleteFunc(everybody.buried(0), func(l api.DeadLetter) bool {
			_, ok := wanted[l.MessageAt]
			return !ok || l.Stream != "EPISODES"
		})
		if len(letters) < len(wanted) {
			return fmt.Errorf("there are %d", len(letters))
		}
		return nil
	})
	if len(letters) != len(wanted) {
		i.t.Errorf("%d dead letters for %d bad events", len(letters), len(wanted))
	}
	for _, l := range letters {
		b := wanted[l.MessageAt]
		if l.Service != "ingest" || b.code != "" && l.Code != b.code || b.field != "" && l.Field != b.field || l.Reason == "" {
			i.t.Errorf("%.80q %v on %s: want %s of %q, got %s of %q: %s", b.body, b.header, b.subject, b.code, b.field, l.Code, l.Field, l.Reason)
		}
		if l.Size != len(b.body) {
			i.t.Errorf("%.80q: size %d", b.body, l.Size)
		}
		whole, err := everybody.api.DeadLetter(i.t.Context(), l.Sequence)
		if err != nil {
			i.t.Fatal(err)
		}
		least := min(len(b.body), 4<<10)
		if events.Incognito([]byte(b.body)) {
			b.body, least = "", 0
		}
		if !bytes.HasPrefix([]byte(b.body), whole.Data) || len(whole.Data) < least {
			i.t.Errorf("%.80q: it keeps %d bytes", b.body, len(whole.Data))
		}
	}
	for _, l := range i.buried(0) {
		if _, ok := wanted[l.MessageAt]; !ok {
			i.t.Errorf("nothing was wrong with %d: %+v", l.MessageAt, l)
		}
	}
}

// unknownVersion publishes a version of an episode that this one does not know. It
// becomes a dead letter at once, because the log of episodes waits for none, and
// holds up no other; the letter can be retried after an upgrade.
func unknownVersion(t *testing.T, i *instance) {
	msg := nats.NewMsg(events.EpisodeSubject(i.person("ann")))
	msg.Data = []byte(`{"content": "from the future"}`)
	for name, value := range map[string]string{"ce-specversion": "1.0", "ce-type": "palimpsest.episode.recorded.v2", "ce-source": "test", "ce-id": "1"} {
		msg.Header.Set(name, value)
	}
	if _, err := i.js.PublishMsg(t.Context(), msg); err != nil {
		t.Fatal(err)
	}
	for n := range 50 {
		i.say(i.person(fmt.Sprintf("user%d", n)), "I live in Oslo.")
	}
	for n := range 50 {
		i.settled(of(i.person(fmt.Sprintf("user%d", n))), 1)
	}
	if letters := i.buried(1); letters[0].Code != events.CodeUnknownKind || letters[0].Truncated {
		t.Errorf("dead letters: %+v", letters)
	}
}

// refusedCandidate: a statement that names unknown facts is a dead letter of its
// own. It can be retried by itself and is not counted again.
func refusedCandidate(t *testing.T, i *instance) {
	ann := i.person("ann")
	i.publish(ann, "", map[string]any{"content": "I live in Oslo.", "metadata": map[string]any{"intent": "update", "replaces": []string{"nobody-knows"}}})
	i.say(ann, "I like tea.")
	before := i.settled(of(ann), 2)
	l := i.buried(1)[0]
	if l.Service != "decider" || l.Code != events.CodeFactConflict || l.Kind != string(events.KindCandidatesExtracted) {
		t.Errorf("letter %+v", l)
	}
	if _, err := i.api.RetryDeadLetter(t.Context(), l.Sequence); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is refused again, with a letter of its own", func() error {
		if again := i.buried(1); len(again) != 1 || again[0].Sequence == l.Sequence {
			return fmt.Errorf("letters %+v", again)
		}
		return nil
	})
	i.say(ann, "I like jazz.")
	after := i.settled(of(ann), 3)
	if after.Candidates != before.Candidates+1 || after.Skipped != 0 {
		t.Errorf("ledger before %+v, after %+v", before, after)
	}
}

// theHotPathIsCheap: what a POST acknowledges is readable and searchable
// by its token at once, and no embedding stands in between.
func theHotPathIsCheap(t *testing.T, i *instance) {
	who := i.person("ann")
	for n := range 20 {
		word := fmt.Sprintf("zebra%d", n)
		w, err := i.api.Record(t.Context(), api.Record{Scope: api.ScopeOf(who), Messages: api.Messages{{Content: "hello " + word}}}, "")
		if err != nil {
			t.Fatal(err)
		}
		if w.Status != "accepted" || w.At == "" || len(w.Episodes) != 1 {
			t.Fatalf("answer: %+v", w)
		}
		found, err := i.api.Search(t.Context(), api.Search{Selector: api.Selector{User: &who.User}, Text: word, At: w.At})
		for err == nil && found.Stale { // it waited for 2 s, on a machine that had more to do
			found, err = i.api.Search(t.Context(), api.Search{Selector: api.Selector{User: &who.User}, Text: word, At: w.At})
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(found.Results) == 0 || found.Results[0].ID != w.Episodes[0].ID {
			t.Errorf("%s: %+v", word, found)
		}
	}
}
