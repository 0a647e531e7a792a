package topology_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"palimpsest/internal/audit/audittest"
	"palimpsest/internal/audit/journal"
	"palimpsest/internal/pipeline"
	"palimpsest/internal/tail"
	"palimpsest/internal/topology"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// TestServicesCanDoTheirWork holds the permissions to what a service does, each
// with a message of its own. The table of scenarios, run as six processes on such
// a server, is the other half.
func TestServicesCanDoTheirWork(t *testing.T) { //nolint:paralleltest // the server reads the environment
	g := startGuarded(t)
	operator := g.as(t, "operator")
	for _, service := range slices.Sorted(maps.Keys(declared.ServicePermissions())) {
		u := g.as(t, service)
		if err := topology.Check(bounded(t), u.js, declared); err != nil {
			t.Errorf("%s cannot check the topology: %v", service, err)
		}
		for _, noun := range makes[service] {
			subject := "palimpsest." + noun + "." + nora.Tokens()
			if noun == events.NounOutcomes {
				continue // no stream answers
			}
			if _, err := u.js.PublishAsync(subject, nil); err != nil {
				t.Errorf("%s cannot publish %s: %v", service, subject, err)
			}
			publish(t, u.js, subject, "x")
		}
		select {
		case <-u.js.PublishAsyncComplete():
		case <-bounded(t).Done():
			t.Errorf("%s is not told that its messages are kept", service)
		}
		consumesAs(t, u, operator)
	}
}

// consumesAs takes a message from each of a service's consumers, and buries one.
func consumesAs(t *testing.T, u, operator *user) {
	t.Helper()
	for _, stream := range declared.Streams {
		for _, c := range stream.Consumers {
			if !strings.HasPrefix(c.Durable, u.name+"-") {
				continue
			}
			publish(t, operator.js, strings.Replace(c.FilterSubject, "*.*.*.*", nora.Tokens(), 1), "x")
			consumer, err := u.js.Consumer(bounded(t), stream.Config.Name, c.Durable)
			if err != nil {
				t.Fatalf("%s cannot bind %s: %v", u.name, c.Durable, err)
			}
			batch, err := consumer.Fetch(1, jetstream.FetchMaxWait(5*time.Second))
			if err != nil {
				t.Fatalf("%s cannot fetch from %s: %v", u.name, c.Durable, err)
			}
			n := 0
			for msg := range batch.Messages() {
				n++
				if err := errors.Join(msg.InProgress(), msg.DoubleAck(bounded(t))); err != nil {
					t.Errorf("%s cannot acknowledge to %s: %v", u.name, c.Durable, err)
				}
			}
			if err := batch.Error(); n != 1 || err != nil {
				t.Errorf("%s fetched %d from %s: %v", u.name, n, c.Durable, err)
			}
		}
	}
	if u.name != "query" {
		publish(t, u.js, events.DeadLetterSubject(u.name, nora), "x")
	}
}

// TestReadersCanRead: services that read a stream besides their consumer may do so.
func TestReadersCanRead(t *testing.T) { //nolint:paralleltest // the server reads the environment
	g := startGuarded(t)
	consolidator, query := g.as(t, "consolidator"), g.as(t, "query")
	const effects = 12 // more than are read one by one
	commits := journal.New(consolidator.js)
	for i, after := 0, uint64(0); i < effects; i++ {
		meta, effect := audittest.JournalEffect(nora, uint64(i+1), "a")
		var err error
		if after, err = commits.Append(bounded(t), meta, effect, after); err != nil {
			t.Fatal(err)
		}
	}
	for _, u := range []*user{consolidator, query} {
		n := 0
		for _, err := range journal.New(u.js).ReadScope(bounded(t), nora, 0) {
			if err != nil {
				t.Fatal(err)
			}
			n++
		}
		if n != effects {
			t.Errorf("%s read %d effects", u.name, n)
		}
		if after, err := journal.New(u.js).Since(bounded(t), time.Unix(1, 0)); after != 0 || err != nil {
			t.Errorf("%s: since ever begins behind %d, %v", u.name, after, err)
		}
		for _, err := range journal.New(u.js).Follow(bounded(t), scope.Exactly(nora), 0) {
			if err != nil {
				t.Errorf("%s cannot follow AUDIT: %v", u.name, err)
			}
			break
		}
	}
}

// TestLogsCanBeRead: ingest, the consolidator and query may create and delete
// consumers of their own. Ingest and the consolidator may also read DEADLETTER and
// remove the durable consumers of an earlier version.
func TestLogsCanBeRead(t *testing.T) { //nolint:paralleltest // the server reads the environment
	g := startGuarded(t)
	operator := g.as(t, "operator").js
	publish(t, operator, events.EpisodeSubject(nora), "x")
	publish(t, operator, "palimpsest.audit."+nora.Tokens(), "x")
	for _, tc := range []struct {
		service, stream, reader, filter string
	}{
		{"ingest", topology.StreamEpisodes, "ingest-07", fmt.Sprintf("palimpsest.episodes.%d.>", nora.Partition(events.Partitions))},
		{"consolidator", topology.StreamAudit, "consolidator-projector", "palimpsest.audit.>"},
	} {
		u := g.as(t, tc.service)
		publish(t, u.js, events.DeadLetterSubject(tc.service, nora), "x")
		if _, err := operator.CreateConsumer(bounded(t), tc.stream, jetstream.ConsumerConfig{Durable: tc.reader}); err != nil {
			t.Fatal(err)
		}
		log, read := pipeline.NewReplay(u.js, tc.stream, tc.service), 0
		_, err := log.Read(bounded(t), 0, func(entries []*pipeline.Entry) error { read += len(entries); return nil })
		if err != nil || read != 1 {
			t.Errorf("%s read %d messages of %s: %v", tc.service, read, tc.stream, err)
		}
		part := pipeline.Partition{Reader: tc.reader, Filter: tc.filter}
		if unread, err := log.Unread(bounded(t), part, 0, 1); !unread || err != nil {
			t.Errorf("%s looks at %s: %v, %v", tc.service, tc.stream, unread, err)
		}
		if _, err := log.Adopt(bounded(t), part, nil); err != nil {
			t.Errorf("%s cannot adopt %s: %v", tc.service, tc.reader, err)
		}
		if _, err := operator.Consumer(bounded(t), tc.stream, tc.reader); !errors.Is(err, jetstream.ErrConsumerNotFound) {
			t.Errorf("%s is still there: %v", tc.reader, err)
		}
	}
	reader := tail.New(tail.Config{JS: g.as(t, "query").js, Stream: topology.StreamEpisodes})
	defer reader.Close()
	if found, err := reader.Read(bounded(t), 2, 5*time.Second); err != nil || len(found) != 1 {
		t.Errorf("query read %d episodes, %v", len(found), err)
	}
}

// TestQueryAdministersLetters: retry sends a letter's message where it came from.
func TestQueryAdministersLetters(t *testing.T) { //nolint:paralleltest // the server reads the environment
	g := startGuarded(t)
	ingest, query := g.as(t, "ingest"), g.as(t, "query")
	for i := range 2 {
		subject, header, body, err := events.Encode(events.Meta{ID: fmt.Sprint("letter-", i), Source: "palimpsest/ingest", Time: time.Unix(1, 0)}, events.MessageBuried{
			Service: "ingest", Stream: topology.StreamEpisodes, Sequence: uint64(i + 1), Subject: events.EpisodeSubject(nora), Scope: nora,
			Code: events.CodeTooLarge, Reason: "too large", Attempts: 1, Data: []byte("x"), Size: 1, BuriedAt: time.Unix(1, 0).UTC(),
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ingest.js.PublishMsg(bounded(t), &nats.Msg{Subject: subject, Header: header, Data: body}); err != nil {
			t.Fatal(err)
		}
	}
	rt, err := pipeline.New(pipeline.Config{}, pipeline.Deps{JS: query.js, Conn: query.conn})
	if err != nil {
		t.Fatal(err)
	}
	letters := rt.Letters()
	found, _, err := letters.List(bounded(t), pipeline.LetterFilter{}, 0, 10)
	if err != nil || len(found) != 2 {
		t.Fatalf("query sees %d letters, %v", len(found), err)
	}
	if err := errors.Join(letters.Retry(bounded(t), found[0].Sequence), letters.Drop(bounded(t), found[1].Sequence)); err != nil {
		t.Errorf("query cannot settle letters: %v", err)
	}
	if n, err := letters.Count(bounded(t)); err != nil || n != 0 {
		t.Errorf("%d letters are left, %v", n, err)
	}
	episodes, err := query.js.Stream(bounded(t), topology.StreamEpisodes)
	if err != nil || episodes.CachedInfo().State.Msgs != 1 {
		t.Errorf("what was retried is not there: %v", err)
	}
}
