package recovery

import (
	"testing"
	"time"

	"palimpsest/internal/memory"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// TestOrdinalsAreNotGuessed where an id may be another episode's.
func TestOrdinalsAreNotGuessed(t *testing.T) {
	t.Parallel()
	nora, noon := scope.Scope{Project: "p", User: "nora"}, time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	in := func(session string) scope.Scope { s := nora; s.Session = session; return s }
	said := func(id, session string) memory.Episode {
		return memory.Episode{ID: id, Source: "app", Scope: in(session), ArrivedAt: noon}
	}
	effect := func(to uint64, at time.Time, id, session string) events.EffectCommitted {
		return events.EffectCommitted{
			Header: events.Header{Scope: nora}, Range: &events.Range{From: to - 1, To: to}, Watermark: &to, CommittedAt: at,
			Facts: []events.Fact{{SourceEpisodeIDs: []string{id}, SessionIDs: []string{session}}},
		}
	}
	for _, tc := range []struct {
		name    string
		effects []events.EffectCommitted
		want    uint64
	}{
		{"nothing was committed", nil, 0},
		{"nothing is named", []events.EffectCommitted{effect(80, noon, "other", "s")}, 80},
		{"the second is named", []events.EffectCommitted{effect(52, noon, "2", "s"), effect(80, noon, "other", "s")}, 50},
		{"and named again", []events.EffectCommitted{effect(52, noon, "2", "s"), effect(80, noon, "2", "s")}, 50},
		{"by a rule that lags", []events.EffectCommitted{effect(60, noon, "other", "s"), effect(30, noon, "2", "s")}, 58},
		{"in another session", []events.EffectCommitted{effect(3, noon, "2", "t"), effect(80, noon, "other", "s")}, 80},
		{"before it was said", []events.EffectCommitted{effect(3, noon.Add(-time.Hour), "2", "s"), effect(80, noon, "other", "s")}, 80},
		{"two have the id", []events.EffectCommitted{effect(3, noon, "1", "s"), effect(80, noon, "other", "s")}, 80},
	} {
		var o ordinals
		for _, e := range []memory.Episode{said("1", "s"), said("1", "s"), said("2", "s"), said("1", "t")} {
			o.say(e)
		}
		for _, e := range tc.effects {
			o.commit(e)
		}
		if got := o.scopes[nora.Fact()].dropped(); got != tc.want {
			t.Errorf("%s: %d were dropped, want %d", tc.name, got, tc.want)
		}
	}
}

// TestWhatIsWholeIsNotCounted: a scope of which EPISODES still has something that
// the store has too goes on where it was, whatever the effects suggest.
func TestWhatIsWholeIsNotCounted(t *testing.T) {
	t.Parallel()
	nora := scope.Scope{Project: "p", User: "nora"}
	var o ordinals
	said := func(id string, seq uint64) memory.Episode {
		return memory.Episode{ID: id, Source: "app", Scope: nora, Seq: seq}
	}
	o.met(said("1", 9), said("1", 1)) // said again
	o.say(said("2", 10))
	if o.scopes[nora].whole {
		t.Error("what was said again later proves nothing")
	}
	o.met(said("3", 11), said("3", 11))
	if !o.scopes[nora].whole {
		t.Error("the very message proves that nothing is missing")
	}
}
