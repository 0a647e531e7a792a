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

	"palimpsest/internal/audit"
	"palimpsest/internal/audit/audittest"
	"palimpsest/internal/broker"
	"palimpsest/internal/pipeline"
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

// consumesAs takes a message from each of a service's consumers, tries it and
// buries it.
func consumesAs(t *testing.T, u, operator *user) {
	t.Helper()
	for _, stream := range declared.Streams {
		for _, c := range stream.Consumers {
			if !strings.HasPrefix(c.Durable, u.name+"-") {
				continue
			}
			offer(t, operator, stream.Config, c)
			consumer, err := u.js.Consumer(bounded(t), stream.Config.Name, c.Durable)
			if err != nil {
				t.Fatalf("%s cannot bind %s: %v", u.name, c.Durable, err)
			}
			options := []jetstream.FetchOpt{jetstream.FetchMaxWait(5 * time.Second)}
			if len(c.PriorityGroups) > 0 {
				options = append(options, jetstream.FetchPriorityGroup(topology.PinGroup))
			}
			batch, err := consumer.Fetch(1, options...)
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
			tries(t, u, stream.Config.Name, c)
		}
	}
	if u.name != "query" {
		publish(t, u.js, events.DeadLetterSubject(u.name, nora), "x")
	}
}

// offer puts a message in front of a consumer.
func offer(t *testing.T, operator *user, stream jetstream.StreamConfig, c jetstream.ConsumerConfig) {
	t.Helper()
	if stream.Name != topology.StreamEpisodes {
		publish(t, operator.js, strings.Replace(c.FilterSubject, "*.*.*.*", nora.Tokens(), 1), "x")
		return
	}
	// Users until one falls into the consumer's partition.
	for i := 0; ; i++ {
		s := nora
		s.User = fmt.Sprint("user-", i)
		if c.Durable == fmt.Sprintf("ingest-%02d", s.Partition(events.Partitions)) {
			publish(t, operator.js, events.EpisodeSubject(s), "x")
			return
		}
	}
}

// tries marks a trial, counts the marks and clears them, marks what it buried where
// that stays in its stream, and gives back a pin.
func tries(t *testing.T, u *user, stream string, c jetstream.ConsumerConfig) {
	t.Helper()
	mark := events.TrialSubject(c.Durable, stream, 7)
	publish(t, u.js, mark, "")
	trials, err := u.js.Stream(bounded(t), topology.StreamTrials)
	if err != nil {
		t.Fatal(err)
	}
	info, err := trials.Info(bounded(t), jetstream.WithSubjectFilter(mark))
	if err != nil || info.State.Subjects[mark] != 1 {
		t.Errorf("%s counts %+v, %v", u.name, info, err)
	}
	if err := trials.Purge(bounded(t), jetstream.WithPurgeSubject(mark)); err != nil {
		t.Errorf("%s cannot clear its marks: %v", u.name, err)
	}
	if len(c.PriorityGroups) == 0 {
		return
	}
	publish(t, u.js, events.BuriedSubject(c.Durable, stream+"@2026-03-01T12:00:00.5Z", 7), "")
	source, err := u.js.Stream(bounded(t), stream)
	if err != nil {
		t.Fatal(err)
	}
	if err := source.UnpinConsumer(bounded(t), c.Durable, topology.PinGroup); err != nil {
		t.Errorf("%s cannot give back %s: %v", u.name, c.Durable, err)
	}
}

// TestReadersCanRead: who reads more than it was handed may do so.
func TestReadersCanRead(t *testing.T) { //nolint:paralleltest // the server reads the environment
	g := startGuarded(t)
	consolidator, query, ingest := g.as(t, "consolidator"), g.as(t, "query"), g.as(t, "ingest")
	const effects = 12 // more than are read one by one
	journal := broker.NewJournal(consolidator.js)
	for i, after := 0, uint64(0); i < effects; i++ {
		meta, effect := audittest.JournalEffect(nora, uint64(i+1), "a")
		var err error
		if after, err = journal.Append(bounded(t), meta, effect, after); err != nil {
			t.Fatal(err)
		}
	}
	for _, u := range []*user{consolidator, query} {
		n := 0
		for _, err := range broker.NewJournal(u.js).ReadScope(bounded(t), nora, 0) {
			if err != nil {
				t.Fatal(err)
			}
			n++
		}
		if n != effects {
			t.Errorf("%s read %d effects", u.name, n)
		}
		if err := broker.NewJournal(u.js).Heads(bounded(t), func(audit.Head) error { return nil }); err != nil {
			t.Errorf("%s: %v", u.name, err)
		}
		if after, err := broker.NewJournal(u.js).Since(bounded(t), time.Unix(1, 0)); after != 0 || err != nil {
			t.Errorf("%s: since ever begins behind %d, %v", u.name, after, err)
		}
		for _, err := range broker.NewJournal(u.js).Follow(bounded(t), scope.Exactly(nora), 0) {
			if err != nil {
				t.Errorf("%s cannot follow AUDIT: %v", u.name, err)
			}
			break
		}
	}
	publish(t, g.as(t, "publisher").js, events.EpisodeSubject(nora), "x")
	partition := fmt.Sprintf("ingest-%02d", nora.Partition(events.Partitions))
	consumer, err := ingest.js.Consumer(bounded(t), topology.StreamEpisodes, partition)
	if err != nil {
		t.Fatal(err)
	}
	batch, err := consumer.Fetch(1, jetstream.FetchMaxWait(5*time.Second), jetstream.FetchPriorityGroup(topology.PinGroup))
	if err != nil {
		t.Fatal(err)
	}
	for msg := range batch.Messages() {
		if err := msg.DoubleAck(bounded(t)); err != nil {
			t.Error(err)
		}
	}
	past, handed, settled := pipeline.NewPast(ingest.js, partition), 0, 0
	err = errors.Join(
		past.Read(bounded(t), 0, func(events.Raw, bool) error { handed++; return nil }),
		past.Newest(bounded(t), func(events.Raw) (bool, error) { settled++; return false, nil }),
	)
	if err != nil || handed != 1 || settled != 1 {
		t.Errorf("ingest read %d handed out, %d settled: %v", handed, settled, err)
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
	letters := pipeline.NewLetters(query.js, query.conn, time.Now)
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
