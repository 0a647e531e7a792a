package e2e

import (
	"fmt"
	"sync"
	"testing"

	"github.com/nats-io/nats.go"

	"palimpsest/pkg/events"
)

// exactlyOnceEffect publishes one event a thousand times, also when the
// broker has forgotten that it knows it.
func exactlyOnceEffect(t *testing.T, i *instance) {
	ann, ben := i.person("ann"), i.person("ben")
	body := map[string]any{"content": "I live in Oslo"}
	first := i.publish(ann, "1", body)
	forgotten := 0
	for n := 1; n < 1000 || forgotten < 3; n++ {
		if i.publish(ann, "1", body) != first {
			forgotten++
		}
	}
	// Another user's event of the same id, as an envelope has it: told by its
	// message id alone, the broker would take it for Ann's for 100 ms.
	i.record(ben, "1", "I live in Bergen")
	i.record(ann, "1", "I live in Oslo")
	last := i.publish(ann, "2", map[string]any{"content": "thanks"}) // behind all repetitions
	i.settled(of(ann), 3)                                            // two sources: an id is its source's
	i.settled(of(ben), 1)
	if got := i.recent(of(ann)); len(got) != 3 {
		t.Errorf("%d episodes: %q", len(got), contents(got))
	}
	wantOne(t, i.facts(of(ann)), "Oslo")
	wantOne(t, i.facts(of(ben)), "Bergen")
	if letters := i.buried(0); len(letters) > 0 {
		t.Fatalf("dead letters: %+v", letters)
	}

	for i.publish(ann, "1", map[string]any{"content": "I live in Rome"}) < last {
		continue // the broker took it for the last repetition
	}
	letters := i.buried(1)
	if l := letters[0]; len(letters) != 1 || l.Code != events.CodeIDConflict || l.Field != "id" || l.Service != "ingest" {
		t.Errorf("letters: %+v", letters)
	}
	wantOne(t, i.facts(of(ann)), "Oslo")
}

// theSameFactFromManySessions says one thing in fifty sessions at once.
func theSameFactFromManySessions(t *testing.T, i *instance) {
	const sessions = 50
	who := i.person("ann")
	var wait sync.WaitGroup
	for n := range sessions {
		wait.Go(func() {
			on := who
			on.Session = fmt.Sprintf("s%d", n)
			msg := nats.NewMsg(events.EpisodeSubject(on))
			msg.Data = []byte(`{"content": "I like Python"}`)
			if _, err := i.js.PublishMsg(t.Context(), msg); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	sel := of(who)
	i.settled(sel, sessions)
	f := wantOne(t, i.facts(sel), "Python")
	if f.Revision != 1 || len(f.SourceEpisodeIDs) != sessions || len(f.SessionIDs) != sessions {
		t.Errorf("revision %d, %d sources, %d sessions", f.Revision, len(f.SourceEpisodeIDs), len(f.SessionIDs))
	}
	counts := map[string]int{}
	for _, e := range i.effects(sel) {
		for _, a := range e.Applied {
			counts[fmt.Sprintf("%s %s %s", e.Rule, a.Delta.Kind(), a.Delta.Provenance().Reason)]++
		}
	}
	if len(counts) != 2 || counts["turn add new"] != 1 || counts["turn noop duplicate"] != sessions-1 {
		t.Errorf("audited: %v", counts)
	}
}
