package audittest

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"palimpsest/internal/audit"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// RunRetention holds a log to [audit.Retention]. open returns an empty log by whose
// clock it is now, and expire ends once the log has removed what expires by then.
func RunRetention(t *testing.T, now time.Time, open func(*testing.T, audit.Retention) audit.Log, expire func(*testing.T, audit.Log)) {
	const hour = time.Hour
	every := []string{"dropped", "dropped now", "kept", "rated", "rated now", "withheld"}
	for _, test := range []struct {
		name string
		audit.Retention
		left []string
	}{
		{"for ever", audit.Retention{}, every},
		{"safety", audit.Retention{Safety: 5 * hour}, []string{"dropped now", "kept", "rated", "rated now"}},
		{"feedback", audit.Retention{Feedback: 5 * hour}, []string{"dropped", "dropped now", "kept", "rated now", "withheld"}},
		{"both", audit.Retention{Safety: 20 * hour, Feedback: 5 * hour}, []string{"dropped", "dropped now", "kept", "rated now", "withheld"}},
		{"longer", audit.Retention{Safety: 20 * hour, Feedback: 20 * hour}, every},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			log := open(t, test.Retention)
			t.Cleanup(func() { _ = log.Close() })
			s := logScope("alice")
			add, noop := events.DeltaAdd, events.DeltaNoop
			logWrite(t, log,
				effectOf(s, 1, 1, "turn", "", now.Add(-10*hour), events.Tally{},
					change{kind: noop, fact: "dropped", why: events.ReasonSafety}, change{kind: noop, fact: "withheld", why: events.ReasonSensitive},
					change{kind: add, fact: "kept", text: "x"}),
				effectOf(s, 2, 2, "command", "", now.Add(-10*hour), events.Tally{}, change{kind: noop, fact: "rated", why: events.ReasonRated}),
				effectOf(s, 3, 3, "turn", "", now.Add(-time.Minute), events.Tally{},
					change{kind: noop, fact: "dropped now", why: events.ReasonSafety}, change{kind: noop, fact: "rated now", why: events.ReasonRated}),
			)
			expire(t, log)
			left := map[string]int{}
			want := map[string]int{}
			for _, fact := range test.left {
				want[fact] = 1
			}
			records, err := log.Records(t.Context(), scope.Exactly(s), audit.Query{Limit: 10})
			for _, r := range records {
				left[r.FactID]++
			}
			if diff := cmp.Diff(want, left); diff != "" || err != nil {
				t.Errorf("records (-want +got):\n%s%v", diff, err)
			}
			counted := uint64(0)
			q := audit.ReportQuery{Selector: scope.Exactly(s), Limit: 10}
			safety, err := log.Safety(t.Context(), q)
			for _, row := range safety {
				counted += row.Drops
			}
			rated, also := log.Feedback(t.Context(), q)
			for _, row := range rated {
				counted += row.Ratings
			}
			if int(counted) != len(test.left)-1 || err != nil || also != nil {
				t.Errorf("reports count %d records, want %d; %v, %v", counted, len(test.left)-1, err, also)
			}
			effects := 0
			for _, err := range log.Effects(t.Context(), s, 0) {
				if err != nil {
					t.Fatal(err)
				}
				effects++
			}
			if effects != 3 {
				t.Errorf("%d effects are left of 3", effects)
			}
		})
	}
}
