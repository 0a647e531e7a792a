package topology_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"palimpsest/internal/testengine/brokertest"
	"palimpsest/internal/topology"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"

	"pgregory.net/rapid"
)

var declared = topology.Declare(topology.Config{})

func find(t testing.TB, decl topology.Declaration, name string) *topology.Stream {
	t.Helper()
	for i := range decl.Streams {
		if decl.Streams[i].Config.Name == name {
			return &decl.Streams[i]
		}
	}
	t.Fatalf("no stream %s", name)
	return nil
}

func TestDeclarationIsSound(t *testing.T) {
	t.Parallel()
	if err := declared.Validate(); err != nil {
		t.Fatal(err)
	}
	consumers := map[string]bool{}
	for _, s := range declared.Streams {
		for _, c := range s.Consumers {
			if consumers[c.Durable] {
				t.Errorf("two consumers are called %s", c.Durable)
			}
			consumers[c.Durable] = true
			if c.MaxDeliver != -1 || c.AckPolicy != jetstream.AckExplicitPolicy {
				t.Errorf("%s: the server would drop messages by itself", c.Durable)
			}
		}
	}
	for _, name := range []string{
		"scheduler-stored", "scheduler-audit", "extractor-ticks", "extractor-ticks-rules", "extractor-ticks-model",
		"decider-candidates", "decider-candidates-rules", "decider-candidates-model", "decider-commands", "consolidator-deltas", "consolidator-deltas-rules", "consolidator-deltas-model",
		"consolidator-access",
	} {
		if !consumers[name] {
			t.Errorf("no consumer %s", name)
		}
	}
	if len(consumers) != 13 {
		t.Errorf("%d consumers", len(consumers))
	}
}

// Every payload's subject must be one that its stream listens on.
func TestSubjectsReachTheirStreams(t *testing.T) {
	t.Parallel()
	env := brokertest.Start(t)
	s := scope.Scope{Project: "default", User: "alice"}
	for stream, subject := range map[string]string{
		topology.StreamEpisodes:   events.EpisodeSubject(s),
		topology.StreamDeadLetter: events.DeadLetterSubject("ingest", s),
		topology.StreamAudit:      events.Subject(events.EffectCommitted{Header: events.Header{Scope: s}}),
		topology.StreamStored:     events.Subject(events.EpisodeStored{Header: events.Header{Scope: s}}),
		topology.StreamTicks:      events.Subject(events.TickIssued{Batch: events.Batch{Header: events.Header{Scope: s}}}),
		topology.StreamCandidates: events.Subject(events.CandidatesExtracted{Batch: events.Batch{Header: events.Header{Scope: s}}}),
		topology.StreamDeltas:     events.Subject(events.DeltasDecided{Batch: events.Batch{Header: events.Header{Scope: s}}}),
		topology.StreamCommands:   events.Subject(events.CommandRequested{Header: events.Header{Scope: s}}),
		topology.StreamAccess:     events.Subject(events.FactReturned{Header: events.Header{Scope: s}}),
	} {
		if ack := publish(t, env.JS, subject, "x"); ack.Stream != stream {
			t.Errorf("%s went to %s, want %s", subject, ack.Stream, stream)
		}
	}
}

func TestApplyIsIdempotent(t *testing.T) {
	t.Parallel()
	env := brokertest.Start(t)
	created := func() map[string]time.Time {
		at := map[string]time.Time{}
		for _, s := range declared.Streams {
			stream, err := env.JS.Stream(bounded(t), s.Config.Name)
			if err != nil {
				t.Fatal(err)
			}
			at[s.Config.Name] = stream.CachedInfo().Created
			for _, c := range s.Consumers {
				consumer, err := stream.Consumer(bounded(t), c.Durable)
				if err != nil {
					t.Fatal(err)
				}
				at[c.Durable] = consumer.CachedInfo().Created
			}
		}
		return at
	}
	before := created()
	for range 2 {
		if err := topology.Apply(bounded(t), env.JS, declared); err != nil {
			t.Fatal(err)
		}
	}
	for name, at := range created() {
		if !at.Equal(before[name]) {
			t.Errorf("%s was made again", name)
		}
	}
	if differences, err := topology.Diff(bounded(t), env.JS, declared); err != nil || len(differences) != 0 {
		t.Errorf("Diff = %v, %v", differences, err)
	}
	if err := topology.Check(bounded(t), env.JS, declared); err != nil {
		t.Error(err)
	}
}

func TestApplyCarriesChangesOut(t *testing.T) {
	t.Parallel()
	env := brokertest.Start(t)
	publish(t, env.JS, episodes, "kept")
	changed := topology.Declare(topology.Config{EpisodesMaxAge: time.Hour, AuditMaxBytes: 1 << 20})
	differences, err := topology.Diff(bounded(t), env.JS, changed)
	if err != nil || len(differences) != 2 {
		t.Fatalf("Diff = %v, %v; want 2", differences, err)
	}
	if err := topology.Check(bounded(t), env.JS, changed); err != nil {
		t.Errorf("an operator's choice keeps services from starting: %v", err)
	}
	if err := topology.Apply(bounded(t), env.JS, changed); err != nil {
		t.Fatal(err)
	}
	if differences, err := topology.Diff(bounded(t), env.JS, changed); err != nil || len(differences) != 0 {
		t.Errorf("after Apply: %v, %v", differences, err)
	}
	stream, err := env.JS.Stream(bounded(t), topology.StreamEpisodes)
	if err != nil {
		t.Fatal(err)
	}
	if n := stream.CachedInfo().State.Msgs; n != 1 {
		t.Errorf("%d episodes are left, want 1", n)
	}
}

// TestApplyKeepsWorkWithoutClass: a broker of the version before classes holds
// work under subjects without one, some of it handed out and some not. Its next
// start applies the topology: all of that work stays with its consumer, and work
// of each class has another.
func TestApplyKeepsWorkWithoutClass(t *testing.T) {
	t.Parallel()
	env := brokertest.Start(t)
	for stream, noun := range map[string]string{
		topology.StreamTicks: events.NounTicks, topology.StreamCandidates: events.NounCandidates, topology.StreamDeltas: events.NounDeltas,
	} {
		old := *find(t, topology.Declare(topology.Config{}), stream)
		old.Config.Subjects = []string{"palimpsest." + noun + ".*.*.*.*"}
		old.Consumers = old.Consumers[2:]
		if err := env.JS.DeleteStream(bounded(t), stream); err != nil {
			t.Fatal(err)
		}
		create(t, env.JS, old)
		for n := range 3 {
			publish(t, env.JS, "palimpsest."+noun+".default.alice._._", strconv.Itoa(n))
		}
		consumer, err := env.JS.Consumer(bounded(t), stream, old.Consumers[0].Durable)
		if err != nil {
			t.Fatal(err)
		}
		held, err := consumer.Next(jetstream.FetchMaxWait(10 * time.Second))
		if err != nil {
			t.Fatal(err)
		}
		if err := topology.Check(bounded(t), env.JS, declared); !errors.Is(err, topology.ErrIncompatible) || !strings.Contains(err.Error(), stream+" subjects") {
			t.Errorf("Check = %v", err)
		}
		env.Restart(t)
		publish(t, env.JS, "palimpsest."+noun+".model.default.alice._._", "model")
		publish(t, env.JS, "palimpsest."+noun+".rules.default.alice._._", "rules")
		if _, err := env.JS.Publish(bounded(t), "palimpsest."+noun+".other.default.alice._._", nil); err == nil {
			t.Errorf("%s takes work of a class that nothing reads", stream)
		}
		if err := held.Nak(); err != nil {
			t.Fatal(err)
		}
		name := old.Consumers[0].Durable
		for durable, want := range map[string][]string{name: {"0", "1", "2"}, name + "-rules": {"rules"}, name + "-model": {"model"}} {
			if got := drained(t, env.JS, stream, durable, len(want)); !slices.Equal(got, want) {
				t.Errorf("%s reads %v, want %v", durable, got, want)
			}
		}
	}
}

// drained acknowledges n messages of a consumer, and returns all that it has, sorted.
func drained(t *testing.T, js jetstream.JetStream, stream, durable string, n int) []string {
	t.Helper()
	consumer, err := js.Consumer(bounded(t), stream, durable)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for range n {
		msg, err := consumer.Next(jetstream.FetchMaxWait(10 * time.Second))
		if err != nil {
			t.Fatalf("%s, after %v: %v", durable, got, err)
		}
		if err := msg.DoubleAck(bounded(t)); err != nil {
			t.Fatal(err)
		}
		got = append(got, string(msg.Data()))
	}
	info, err := consumer.Info(bounded(t))
	if err != nil || info.NumPending+uint64(info.NumAckPending) > 0 {
		t.Errorf("%s has more: %+v, %v", durable, info, err)
	}
	slices.Sort(got)
	return got
}

// Each deviation is made on a server and must be found, named, and judged.
func TestDiffFindsDeviations(t *testing.T) { //nolint:tparallel // the cases change one server in turn
	t.Parallel()
	env := brokertest.Start(t)
	for _, tc := range []struct {
		name         string
		stream       string
		change       func(s *topology.Stream)
		want         string // in the text of a difference
		incompatible bool
	}{
		{"missing stream", topology.StreamTicks, nil, "TICKS: want to exist", true},
		{"missing consumer", topology.StreamTicks, func(s *topology.Stream) { s.Consumers = nil }, "TICKS extractor-ticks: want to exist", true},
		{"retention", topology.StreamTicks, func(s *topology.Stream) { s.Config.Retention = jetstream.LimitsPolicy }, "TICKS retention", true},
		{"no transform", topology.StreamEpisodes, func(s *topology.Stream) { s.Config.SubjectTransform = nil }, "EPISODES transform", true},
		{"transform from elsewhere", topology.StreamEpisodes, func(s *topology.Stream) {
			s.Config.SubjectTransform.Source = "palimpsest.episode.*.*.*.*"
		}, "EPISODES transform source", true},
		{"other partitions", topology.StreamEpisodes, func(s *topology.Stream) {
			s.Config.SubjectTransform.Destination = strings.Replace(s.Config.SubjectTransform.Destination, "16", "32", 1)
		}, "EPISODES transform", true},
		{"filter on the untransformed subject", topology.StreamEpisodes, func(s *topology.Stream) {
			s.Consumers = append(s.Consumers, jetstream.ConsumerConfig{Durable: "mine", FilterSubject: "palimpsest.episodes.*.*.*.*"})
		}, "EPISODES mine filter: want one that matches what is stored", true},
		{"queue with a gap", topology.StreamTicks, func(s *topology.Stream) {
			s.Consumers[0].FilterSubject = "palimpsest.ticks.rules.default.*.*.*"
		}, "TICKS coverage", true},
		{"subjects", topology.StreamDeltas, func(s *topology.Stream) { s.Config.Subjects = []string{"palimpsest.deltas.>"} }, "DELTAS subjects", true},
		{"per subject", topology.StreamStored, func(s *topology.Stream) { s.Config.MaxMsgsPerSubject = 1 }, "STORED messages per subject: want unlimited, have 1", true},
		{"ack policy", topology.StreamAudit, func(s *topology.Stream) { s.Consumers[0].AckPolicy = jetstream.AckNonePolicy }, "AUDIT scheduler-audit ack policy", true},
		{"deliveries", topology.StreamTicks, func(s *topology.Stream) { s.Consumers[0].MaxDeliver = 5 }, "deliveries: want unlimited, have 5", true},
		{"pinned", topology.StreamTicks, func(s *topology.Stream) {
			c := &s.Consumers[0]
			c.PriorityPolicy, c.PriorityGroups, c.PinnedTTL = jetstream.PriorityPolicyPinned, []string{"pin"}, time.Second
		}, "extractor-ticks-rules priority policy", true},
		{"ack wait", topology.StreamTicks, func(s *topology.Stream) { s.Consumers[0].AckWait = time.Minute }, "ack wait: want 5s, have 1m0s", true},
		{"direct get", topology.StreamAudit, func(s *topology.Stream) { s.Config.AllowDirect = true }, "AUDIT direct get", true},
		{"ack pending", topology.StreamTicks, func(s *topology.Stream) { s.Consumers[0].MaxAckPending = 7 }, "ack pending", false},
		{"age", topology.StreamAccess, func(s *topology.Stream) { s.Config.MaxAge = time.Hour }, "ACCESS age: want 24h0m0s, have 1h0m0s", false},
		{"duplicates", topology.StreamEpisodes, func(s *topology.Stream) { s.Config.Duplicates = time.Minute }, "EPISODES duplicates window", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if err := env.JS.DeleteStream(bounded(t), tc.stream); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { restore(t, env.JS, tc.stream) })
			if tc.change != nil {
				wrong := *find(t, topology.Declare(topology.Config{}), tc.stream)
				tc.change(&wrong)
				create(t, env.JS, wrong)
			}
			differences, err := topology.Diff(bounded(t), env.JS, declared)
			if err != nil {
				t.Fatal(err)
			}
			found := false
			for _, d := range differences {
				found = found || strings.Contains(d.String(), tc.want) && d.Incompatible == tc.incompatible
			}
			if !found {
				t.Errorf("no difference says %q: %v", tc.want, differences)
			}
			switch err := topology.Check(bounded(t), env.JS, declared); {
			case tc.incompatible && (!errors.Is(err, topology.ErrIncompatible) || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("Check = %v", err)
			case !tc.incompatible && err != nil:
				t.Errorf("Check = %v, want nil", err)
			}
		})
	}
}

// Two consumers of a work queue that overlap are refused by the server; that is
// found in a declaration, too.
func TestFaultsOfDeclaration(t *testing.T) {
	t.Parallel()
	decl := topology.Declare(topology.Config{})
	ticks := find(t, decl, topology.StreamTicks)
	second := ticks.Consumers[0]
	second.Durable, second.FilterSubject = "second", "palimpsest.ticks.rules.default.>"
	ticks.Consumers = append(ticks.Consumers, second)
	if err := decl.Validate(); !errors.Is(err, topology.ErrIncompatible) || !strings.Contains(err.Error(), "second") {
		t.Errorf("Validate = %v", err)
	}
}

// restore makes a stream anew as it is declared.
func restore(t *testing.T, js jetstream.JetStream, name string) {
	t.Helper()
	ctx := context.Background() // that of the test is over
	if err := js.DeleteStream(ctx, name); err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
		t.Fatal(err)
	}
	if err := topology.Apply(ctx, js, declared); err != nil {
		t.Fatal(err)
	}
}

func create(t *testing.T, js jetstream.JetStream, s topology.Stream) {
	t.Helper()
	if _, err := js.CreateStream(bounded(t), s.Config); err != nil {
		t.Fatal(err)
	}
	for _, c := range s.Consumers {
		if _, err := js.CreateConsumer(bounded(t), s.Config.Name, c); err != nil {
			t.Fatal(err)
		}
	}
}

func TestPartitionIsThatOfTheScope(t *testing.T) {
	t.Parallel()
	env := brokertest.Start(t)
	stream, err := env.JS.Stream(bounded(t), topology.StreamEpisodes)
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("é", scope.MaxIdentifier/2)
	ctx := bounded(t)
	check := func(t rapid.TB, s scope.Scope) {
		ack, err := env.JS.Publish(ctx, events.EpisodeSubject(s), nil)
		if err != nil {
			t.Fatalf("publish for %s: %v", s, err)
		}
		msg, err := stream.GetMsg(ctx, ack.Sequence)
		if err != nil {
			t.Fatal(err)
		}
		tokens := strings.SplitN(msg.Subject, ".", 4)
		if got, want := tokens[2], strconv.Itoa(s.Partition(events.Partitions)); got != want {
			t.Fatalf("%s is in partition %s, want %s", s, got, want)
		}
		if _, back, err := events.ParseSubject(msg.Subject); err != nil || back != s {
			t.Fatalf("%s came back as %s, %v", s, back, err)
		}
	}
	for _, s := range []scope.Scope{
		{Project: long, User: long, Agent: long, Session: long},
		{Project: "default", User: "alice"}, {Project: "default", Agent: "bot"}, {Project: "default", Session: "s"},
		{Project: "default", User: "*"}, {Project: "default", User: ">"}, {Project: "default", User: "_"}, {Project: "default", User: "%"},
	} {
		check(t, s)
	}
	identifier := rapid.Custom(func(t *rapid.T) string {
		id := rapid.StringOf(rapid.RuneFrom([]rune("aZ0-_.*>%/ é漢👩'\"{}()$"))).Draw(t, "id")
		for len(id) > scope.MaxIdentifier {
			id = id[:len(id)-1]
		}
		return strings.ToValidUTF8(id, "")
	})
	rapid.Check(t, func(t *rapid.T) {
		s := scope.Scope{
			Project: identifier.Filter(func(id string) bool { return id != "" }).Draw(t, "project"),
			User:    identifier.Draw(t, "user"),
			Agent:   identifier.Draw(t, "agent"),
			Session: identifier.Draw(t, "session"),
		}
		if s.Validate() == nil {
			check(t, s)
		}
	})
}
