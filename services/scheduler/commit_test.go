package scheduler

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"palimpsest/pkg/events"
)

// TestCommitReadsAnEffect holds the view to what the consolidator publishes.
func TestCommitReadsAnEffect(t *testing.T) {
	t.Parallel()
	to := uint64(9)
	effect := events.EffectCommitted{
		Header: events.Header{Scope: alice, Incarnation: 2}, Revision: 4, Rule: "turn", Cause: events.CauseEvery,
		Range: &events.Range{From: 5, To: 9}, Watermark: &to, CommittedAt: noon,
		Facts: []events.Fact{{ID: "f", Text: "a fact"}},
	}
	in := overTheWire[commit](t, effect)
	want := commit{Header: effect.Header, Revision: 4, Rule: "turn", Watermark: &to}
	if diff := cmp.Diff(want, in.Data); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !in.Arrived.Equal(noon) {
		t.Errorf("arrived %s", in.Arrived)
	}
}

// TestEndGoesWhereItsEpisodesWent: only there is it in order behind them.
func TestEndGoesWhereItsEpisodesWent(t *testing.T) {
	t.Parallel()
	one := session(alice, "one")
	end := events.SessionEnded{Scope: one, Cause: events.EndIdle, LastOrdinal: 3, Timestamp: events.Timestamp{Time: noon}}
	if got, want := events.Subject(end), events.EpisodeSubject(one); got != want {
		t.Errorf("published on %s, want %s", got, want)
	}
	if diff := cmp.Diff(end, overTheWire[events.SessionEnded](t, end).Data); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func overTheWire[P events.Payload](t *testing.T, p events.Payload) events.Event[P] {
	t.Helper()
	subject, header, body, err := events.Encode(events.Meta{ID: "1", Source: "test", Time: noon}, p)
	if err != nil {
		t.Fatal(err)
	}
	meta, data, err := events.Decode(events.Raw{Subject: subject, Header: header, Body: body, Stream: "S", Sequence: 1, Time: noon, Delivery: 1})
	if err != nil {
		t.Fatal(err)
	}
	in, err := events.DecodeData[P](meta, data)
	if err != nil {
		t.Fatal(err)
	}
	return in
}
