package decider

import (
	"testing"

	"palimpsest/pkg/events"
)

// A mark keeps a candidate back only if it names all of its sources.
func TestDistrusted(t *testing.T) {
	t.Parallel()
	episodes := []events.EpisodeRef{{ID: "e1", Session: "bad"}, {ID: "e2", Session: "good", SourceNode: "web"}}
	session := events.Hold{Why: events.WhyQuarantine, Distrust: &events.Distrust{Session: "bad"}}
	node := events.Hold{Why: events.WhyQuarantine, Distrust: &events.Distrust{SourceNode: "web"}}
	message := events.Hold{Why: events.WhyQuarantine, Distrust: &events.Distrust{Episode: "e2"}}
	for _, row := range []struct {
		sources []string
		held    []events.Hold
		want    bool
	}{
		{[]string{"e1"}, []events.Hold{session}, true},
		{[]string{"e1", "e2"}, []events.Hold{session}, false},
		{[]string{"e1", "e2"}, []events.Hold{session, node}, true},
		{[]string{"e2"}, []events.Hold{message}, true},
		{[]string{"e3"}, []events.Hold{session, node}, false}, // not of the batch
		{nil, []events.Hold{session}, false},
		{[]string{"e1"}, []events.Hold{{Why: "hedged"}}, false},
	} {
		if got := distrusted(events.Candidate{SourceEpisodeIDs: row.sources}, episodes, row.held); got != row.want {
			t.Errorf("%v under %d marks: %v", row.sources, len(row.held), got)
		}
	}
}
