package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
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

// bad is an event that nobody can accept, and how it must be answered.
type bad struct {
	subject     string
	header      nats.Header
	body        string
	code, field string
}

func badEvents() []bad {
	good := events.EpisodeSubject(person("ann"))
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
		{good, nil, "{\"content\": \"\xff\xfe\"}", "", ""},
		{good, nil, `{"content": "` + strings.Repeat("x", 1<<20) + `"}`, events.CodeTooLarge, "content"},
		{good, nil, `{"content": "x", "metadata": {"m": "` + strings.Repeat("x", 17<<10) + `"}}`, events.CodeTooLarge, "metadata"},
		{"palimpsest.episodes.default._._._", nil, ok, events.CodeScopeMissing, ""},
		{"palimpsest.episodes._.ann._._", nil, ok, "", "project"},
		{"palimpsest.episodes.default.Ann.assistant.s1", nil, ok, events.CodeSubjectToken, "user"},
		{"palimpsest.episodes.default.ann.%61.s1", nil, ok, events.CodeSubjectToken, "agent"},
		{good, cloud("ce-id", ""), ok, "", "id"},
		{good, cloud("ce-source", ""), ok, "", "source"},
		{good, cloud("ce-specversion", "0.3"), ok, "", "specversion"},
		{good, cloud("ce-type", "com.example.said"), ok, events.CodeInvalidField, "type"},
		{good, cloud("ce-subject", "/user/ben/"), ok, events.CodeInvalidField, "subject"},
		{good, cloud("ce-time", "noon"), ok, "", "time"},
	}
}

// TestP8BadInputIsAnswered hides bad events among many good ones, of the same and of other users: each bad one is a dead letter that names what is
// wrong with it, and every good one is stored.
func TestP8BadInputIsAnswered(t *testing.T) {
	t.Parallel()
	const users = 9
	i := start(t, t.TempDir())
	js, err := jetstream.New(i.conn, jetstream.WithPublishAsyncMaxPending(256))
	if err != nil {
		t.Fatal(err)
	}
	bads := badEvents()
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
		who := person(fmt.Sprintf("user%d", n%users))
		if n%users == 0 {
			who = person("ann") // whom the bad ones name as well
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
		i.settled(of(person(user)), n)
	}
	i.answered(wanted)
	if got := len(i.recent(everything("default"))); got != many {
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

// answered checks every dead letter against the event that it answers.
func (i *instance) answered(wanted map[uint64]bad) {
	i.t.Helper()
	letters := i.buried(len(wanted))
	if len(letters) != len(wanted) {
		i.t.Errorf("%d dead letters for %d bad events", len(letters), len(wanted))
	}
	for _, l := range letters {
		b, ok := wanted[l.MessageAt]
		if !ok {
			i.t.Errorf("nothing was wrong with %d: %+v", l.MessageAt, l)
			continue
		}
		if l.Service != "ingest" || b.code != "" && l.Code != b.code || b.field != "" && l.Field != b.field || l.Reason == "" {
			i.t.Errorf("%.80q %v on %s: want %s of %q, got %s of %q: %s", b.body, b.header, b.subject, b.code, b.field, l.Code, l.Field, l.Reason)
		}
		if l.Size != len(b.body) {
			i.t.Errorf("%.80q: size %d", b.body, l.Size)
		}
		whole, err := i.api.DeadLetter(i.t.Context(), l.Sequence)
		if err != nil {
			i.t.Fatal(err)
		}
		if !bytes.HasPrefix([]byte(b.body), whole.Data) || len(whole.Data) < min(len(b.body), 4<<10) {
			i.t.Errorf("%.80q: it keeps %d bytes", b.body, len(whole.Data))
		}
	}
}

// TestP7TheStoreFileVanishes takes the memory's file away under the running
// program, which must not go on as if its writes were kept.
func TestP7TheStoreFileVanishes(t *testing.T) {
	t.Parallel()
	i := start(t, t.TempDir())
	i.say(person("ann"), "I live in Oslo")
	i.settled(of(person("ann")), 1)
	path := filepath.Join(i.data, "memory.db")
	if err := os.Rename(path, path+".away"); err != nil {
		t.Fatal(err)
	}
	code, said := i.ended()
	if code != 1 || !strings.Contains(said, path) {
		t.Errorf("exit %d, said %q", code, said)
	}
	if err := os.Remove(path); err == nil {
		t.Error("it made another file in its place")
	}
	// Recovery needs nothing but the file.
	if err := os.Rename(path+".away", path); err != nil {
		t.Fatal(err)
	}
	i.begin()
	wantOne(t, i.facts(of(person("ann"))), "Oslo")
}

// TestP9TheHotPathIsCheap: what a POST acknowledges is readable and searchable
// by its token at once, and no embedding stands in between.
func TestP9TheHotPathIsCheap(t *testing.T) {
	t.Parallel()
	i := start(t, t.TempDir())
	who := person("ann")
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
		if err != nil {
			t.Fatal(err)
		}
		if found.Stale || len(found.Results) == 0 || found.Results[0].ID != w.Episodes[0].ID {
			t.Errorf("%s: %+v", word, found)
		}
	}
}
