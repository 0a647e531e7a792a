package broker_test

import (
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"palimpsest/internal/broker"
	"palimpsest/internal/topology"
)

const ticks = "palimpsest.ticks.rules.default.alice._._"

// TestP7MessagesInHandAreReleased: a message in hand when its process ended is
// delivered at once to the next one over the same directory, in order and with its
// count. A message that was in hand twice waits for the ack wait, and so do the
// messages delivered with it.
func TestP7MessagesInHandAreReleased(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var want []uint64
	for round := range 3 {
		b, err := broker.StartEmbedded(broker.EmbeddedConfig{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		if round == 0 {
			for _, body := range []string{"one", "two", "three"} {
				want = append(want, publish(t, b.JetStream(), ticks, body).Sequence)
			}
		}
		ctx := bounded(t)
		consumer, err := b.JetStream().Consumer(ctx, topology.StreamTicks, "extractor-ticks-rules")
		if err != nil {
			t.Fatal(err)
		}
		if round == 2 {
			if info := consumer.CachedInfo(); info.NumAckPending != 2 || info.NumRedelivered != 2 {
				t.Errorf("in hand %d, of them again %d", info.NumAckPending, info.NumRedelivered)
			}
			batch, err := consumer.FetchNoWait(len(want))
			if err != nil {
				t.Fatal(err)
			}
			for msg := range batch.Messages() {
				t.Errorf("delivered before the ack wait ended: %s", msg.Data())
			}
		} else {
			got := fetch(t, consumer, len(want))
			if !slices.Equal(got, want) {
				t.Errorf("round %d: delivered %v, want %v", round, got, want)
			}
		}
		if err := b.Shutdown(ctx); err != nil {
			t.Fatal(err)
		}
		if round == 0 {
			want = want[1:]
		}
	}
}

// fetch takes n messages, acknowledges the first at its first delivery, and returns
// the sequences.
func fetch(t *testing.T, consumer jetstream.Consumer, n int) (sequences []uint64) {
	t.Helper()
	batch, err := consumer.Fetch(n, jetstream.FetchMaxWait(3*time.Second)) // the ack wait is longer
	if err != nil {
		t.Fatal(err)
	}
	for msg := range batch.Messages() {
		meta, err := msg.Metadata()
		if err != nil {
			t.Fatal(err)
		}
		if len(sequences) == 0 && meta.NumDelivered == 1 {
			if err := msg.DoubleAck(bounded(t)); err != nil {
				t.Fatal(err)
			}
		}
		sequences = append(sequences, meta.Sequence.Stream)
	}
	return sequences
}
