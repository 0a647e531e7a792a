package e2e

import (
	"slices"
	"testing"
	"time"

	"palimpsest/pkg/api"
)

// aheadClock: a statement from a clock that says 2099 counts as said when it
// arrived, so that the statements that follow it hold, now and later.
func aheadClock(t *testing.T, i *instance) {
	who := i.person("ann")
	sel := of(who)
	i.publish(who, "", map[string]any{"content": "I live in Oslo.", "timestamp": "2099-01-01T00:00:00Z"})
	i.settled(sel, 1)
	i.publish(who, "", map[string]any{"content": "I moved to Lisbon.", "timestamp": time.Now().Format(time.RFC3339Nano)})
	i.say(who, "I moved to Bergen.")
	i.settled(sel, 3)
	if f := wantOne(t, i.facts(sel), "Bergen"); f.ValidFrom.After(time.Now()) || f.Revision != 3 {
		t.Errorf("%+v", f)
	}
	said := i.recent(sel)
	clamped := slices.IndexFunc(said, func(e api.Episode) bool { return e.Clamped })
	if clamped < 0 || !said[clamped].Timestamp.Equal(said[clamped].ArrivedAt) || said[clamped].Content != "I live in Oslo." {
		t.Errorf("%+v", said)
	}
}
