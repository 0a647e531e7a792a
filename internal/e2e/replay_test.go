package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"palimpsest/internal/topology"
	"palimpsest/pkg/client"
	"palimpsest/pkg/events"
)

// replayFollowsAndReportsCount follows effects while messages arrive, replays them,
// and compares the reports with them.
func replayFollowsAndReportsCount(t *testing.T, i *instance) {
	who := i.person("followed")
	sel := of(who)
	api := i.project(sel)
	followed := make(chan uint64, 100)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	go func() {
		defer close(followed)
		for line, err := range api.Replay(ctx, sel, client.ReplayAudit{Follow: true, Kinds: []string{"add", "update"}, Limit: 2}) {
			if err != nil {
				t.Errorf("follow: %v", err)
				return
			}
			followed <- line.Sequence
		}
	}()
	for n, said := range []turn{"I live in Oslo.", "What time is it?", "I moved to Rome."} {
		i.say(who, said)
		i.settled(sel, n+1) // an effect each
	}
	var live []uint64
	for sequence := range followed {
		live = append(live, sequence)
	}
	var replayed []uint64
	deltas := map[string]float64{}
	for line, err := range api.Replay(t.Context(), sel, client.ReplayAudit{From: time.Now().Add(-time.Hour), To: time.Now().Add(time.Hour)}) {
		if err != nil {
			t.Fatal(err)
		}
		var e events.EffectCommitted
		if err := json.Unmarshal(line.Data, &e); err != nil {
			t.Fatal(err)
		}
		changes := false
		for _, a := range e.Applied {
			deltas[e.Rule+" "+string(a.Delta.Kind())]++
			changes = changes || a.Delta.Kind() != events.DeltaNoop && a.Delta.Kind() != events.DeltaDelete
		}
		if changes && len(replayed) < 2 {
			replayed = append(replayed, line.Sequence)
		}
	}
	if diff := cmp.Diff(live, replayed); diff != "" || len(live) != 2 {
		t.Errorf("followed %v (-followed +replayed):\n%s", live, diff)
	}
	eventually(t, "every delta is in the report", func() error {
		r, err := api.Report(t.Context(), "deltas", sel, client.ReportRange{})
		if err != nil {
			return err
		}
		got := map[string]float64{}
		for _, row := range r.Rows {
			n, _ := row["deltas"].(float64)
			got[fmt.Sprint(row["rule"], " ", row["kind"])] += n
		}
		if diff := cmp.Diff(deltas, got); diff != "" {
			return fmt.Errorf("report (-replayed +reported):\n%s", diff)
		}
		return nil
	})
	eventually(t, "its effects are, too", func() error {
		r, err := api.Report(t.Context(), "yield", sel, client.ReportRange{})
		if err == nil && (len(r.Rows) == 0 || r.Rows[0]["extractor"] == "" || r.Rows[0]["episodes"] == 0.) {
			err = fmt.Errorf("yield: %+v", r)
		}
		return err
	})
}

// TestReplayOfATrimmedStream wants the effects that AUDIT has dropped, too.
func TestReplayOfATrimmedStream(t *testing.T) {
	t.Parallel()
	i := start(t, t.TempDir())
	who := person("ann")
	for n, city := range cities {
		i.say(who, turn("I moved to "+city+"."))
		i.settled(of(who), n+1)
	}
	want := i.effects(of(who))
	i.allLogged(everything("default"))
	i.trim(topology.StreamAudit, 2)
	before, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	after, err := json.Marshal(i.effects(of(who)))
	if err != nil || string(after) != string(before) {
		t.Errorf("%v: effects before and after the trim:\n%s\n%s", err, before, after)
	}
}
