package topology_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"palimpsest/internal/testengine/brokertest"
	"palimpsest/internal/topology"
)

// A broker of a version before lacks DEADLETTER and waits longer for acks. It is
// brought up to date in place: a message that a dead process held comes back by the
// new ack wait.
func TestApplyUpgrades(t *testing.T) {
	t.Parallel()
	env := brokertest.Start(t)
	old := find(t, topology.Declare(topology.Config{}), topology.StreamTicks)
	old.Consumers[0].AckWait = 30 * time.Second
	if err := env.JS.DeleteStream(bounded(t), topology.StreamDeadLetter); err != nil {
		t.Fatal(err)
	}
	consumer, err := env.JS.UpdateConsumer(bounded(t), topology.StreamTicks, old.Consumers[0])
	if err != nil {
		t.Fatal(err)
	}
	publish(t, env.JS, "palimpsest.ticks.rules.default.alice._._", "held by the dead")
	if _, err := consumer.Next(jetstream.FetchMaxWait(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	err = topology.Check(bounded(t), env.JS, declared)
	if !errors.Is(err, topology.ErrIncompatible) || !strings.Contains(err.Error(), "ack wait: want 5s, have 30s") || !strings.Contains(err.Error(), "DEADLETTER: want to exist") {
		t.Errorf("Check = %v", err)
	}
	if err := topology.Apply(bounded(t), env.JS, declared); err != nil {
		t.Fatal(err)
	}
	again, err := consumer.Next(jetstream.FetchMaxWait(25 * time.Second))
	if err != nil {
		t.Fatal(err)
	}
	if meta, err := again.Metadata(); err != nil || meta.NumDelivered != 2 || time.Since(began) > 25*time.Second {
		t.Errorf("delivery %+v after %v, %v", meta, time.Since(began), err)
	}
}

// The version before read EPISODES and AUDIT with durable consumers, and kept marks
// in the streams TRIALS and BURIED. Services start on such a broker. Apply removes
// the two streams. It leaves the consumers: the ordered readers need their places,
// and remove them.
func TestEarlierVersionIsAccepted(t *testing.T) {
	t.Parallel()
	env := brokertest.Start(t)
	former := map[string]string{"ingest-00": topology.StreamEpisodes, "consolidator-projector": topology.StreamAudit, "consolidator-auditlog": topology.StreamAudit}
	for name, stream := range former {
		cfg := jetstream.ConsumerConfig{Durable: name, AckWait: 4 * time.Second}
		if stream == topology.StreamEpisodes {
			cfg.FilterSubject = "palimpsest.episodes.0.>"
			cfg.PriorityPolicy, cfg.PriorityGroups, cfg.PinnedTTL = jetstream.PriorityPolicyPinned, []string{"pin"}, 3*time.Second
		}
		if _, err := env.JS.CreateConsumer(bounded(t), stream, cfg); err != nil {
			t.Fatal(err)
		}
	}
	marks := map[string]string{"TRIALS": "palimpsest.trials.*.*.*", "BURIED": "palimpsest.buried.*.*.*"}
	for name, subject := range marks {
		if _, err := env.JS.CreateStream(bounded(t), jetstream.StreamConfig{Name: name, Subjects: []string{subject}}); err != nil {
			t.Fatal(err)
		}
	}
	if differences, err := topology.Diff(bounded(t), env.JS, declared); err != nil || len(differences) != 0 {
		t.Errorf("Diff = %v, %v", differences, err)
	}
	if err := topology.Ensure(bounded(t), env.JS, declared); err != nil {
		t.Error(err)
	}
	if err := topology.Apply(bounded(t), env.JS, declared); err != nil {
		t.Fatal(err)
	}
	for name := range marks {
		if _, err := env.JS.Stream(bounded(t), name); !errors.Is(err, jetstream.ErrStreamNotFound) {
			t.Errorf("%s after Apply: %v", name, err)
		}
	}
	for name, stream := range former {
		if _, err := env.JS.Consumer(bounded(t), stream, name); err != nil {
			t.Errorf("%s after Apply: %v", name, err)
		}
	}
}

// Apply leaves alone a stream of another owner with a name that an earlier version
// used.
func TestApplyRemovesNothingOfOthers(t *testing.T) {
	t.Parallel()
	env := brokertest.Start(t)
	if _, err := env.JS.CreateStream(bounded(t), jetstream.StreamConfig{Name: "TRIALS", Subjects: []string{"clinic.trials.>"}}); err != nil {
		t.Fatal(err)
	}
	if err := topology.Apply(bounded(t), env.JS, declared); err != nil {
		t.Fatal(err)
	}
	if _, err := env.JS.Stream(bounded(t), "TRIALS"); err != nil {
		t.Error(err)
	}
}

// The first version with keys allowed a message that removes those before it from
// their bucket. No version sends one; Apply no longer allows it.
func TestApplyTakesRollupsFromTheBucket(t *testing.T) {
	t.Parallel()
	env := brokertest.Start(t)
	old := find(t, topology.Declare(topology.Config{}), topology.StreamKeys).Config
	old.AllowRollup = true
	if _, err := env.JS.UpdateStream(bounded(t), old); err != nil {
		t.Fatal(err)
	}
	if err := topology.Check(bounded(t), env.JS, declared); err != nil {
		t.Errorf("services do not start on it: %v", err)
	}
	if err := topology.Apply(bounded(t), env.JS, declared); err != nil {
		t.Fatal(err)
	}
	stream, err := env.JS.Stream(bounded(t), topology.StreamKeys)
	if err != nil || stream.CachedInfo().Config.AllowRollup {
		t.Errorf("rollups are allowed after Apply: %v", err)
	}
}
