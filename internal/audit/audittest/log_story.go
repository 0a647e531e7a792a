package audittest

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"palimpsest/internal/audit"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// LogStory returns n effects of a scope, of consecutive revisions and with
// sequences that are multiples of step: the first adds a fact, the others
// update it, and each holds a NOOP as well.
func LogStory(s scope.Scope, n int, step uint64) []events.Event[events.EffectCommitted] {
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	out := make([]events.Event[events.EffectCommitted], 0, n)
	var before *events.Fact
	for revision := uint64(1); revision <= uint64(n); revision++ {
		at := start.Add(time.Duration(revision) * time.Minute)
		episode := fmt.Sprintf("episode-%d", revision)
		f := events.Fact{
			ID: "fact", Revision: revision, Kind: events.FactSemantic, Text: fmt.Sprintf("version %d", revision),
			EventTime: at, CreatedAt: start, UpdatedAt: at, ValidFrom: at, SourceEpisodeIDs: []string{episode}, RuleID: "pattern",
		}
		e := events.EffectCommitted{
			Header: events.Header{Scope: s}, Revision: revision, Rule: "turn", CommittedAt: at, Facts: []events.Fact{f},
			Outcomes: []events.Outcome{{CorrelationID: fmt.Sprintf("request-%d", revision), EpisodeIDs: []string{episode}, Results: []events.Result{}}},
		}
		if revision%2 == 0 {
			e.Rule = "sleep"
		}
		change := events.Applied{Delta: storyDelta(f, revision), FactID: f.ID, After: fmt.Sprintf("fact@%d", revision)}
		if before != nil {
			e.Versions = []events.Fact{*before}
			change.Before = fmt.Sprintf("fact@%d", before.Revision)
		}
		e.Applied = []events.Applied{change, {Delta: storyNoop(f, revision)}}
		out = append(out, events.Event[events.EffectCommitted]{
			Meta: events.Meta{
				ID: events.HashID(s.String(), episode), Source: "test", Kind: events.KindEffectCommitted, Scope: s, Time: at,
				CorrelationID: fmt.Sprintf("message-%d", revision), Sequence: revision * step,
			},
			Data: e,
		})
		before = &f
	}
	return out
}

func storyProvenance(f events.Fact, revision uint64, what string, reason events.Reason) events.Provenance {
	return events.Provenance{
		ID: fmt.Sprintf("%s-%d", what, revision), CandidateID: "candidate", SourceEpisodeIDs: f.SourceEpisodeIDs,
		PromotionTS: f.UpdatedAt, RuleID: f.RuleID, Confidence: 0.5, Reason: reason, DecidedBy: "rules@v1",
	}
}

func storyDelta(f events.Fact, revision uint64) events.Delta {
	var d events.Delta
	var err error
	if revision == 1 {
		d, err = events.NewAdd(storyProvenance(f, revision, "add", events.ReasonNew), events.FactPayload{Fact: &f})
	} else {
		d, err = events.NewUpdate(storyProvenance(f, revision, "update", events.ReasonRefinement), events.FactPayload{Fact: &f}, []string{f.ID})
	}
	if err != nil {
		panic(err)
	}
	return d
}

func storyNoop(f events.Fact, revision uint64) events.Delta {
	d, err := events.NewNoop(storyProvenance(f, revision, "noop", events.ReasonTransient), "")
	if err != nil {
		panic(err)
	}
	return d
}

func logScope(user string) scope.Scope { return scope.Scope{Project: "default", User: user} }

func logWrite(t *testing.T, log audit.Log, effects ...events.Event[events.EffectCommitted]) {
	t.Helper()
	if err := log.Write(t.Context(), effects); err != nil {
		t.Fatalf("write: %v", err)
	}
}

// logQuery asks for as much as may be asked for where the query has no limit.
func logQuery(t *testing.T, log audit.Log, sel scope.Selector, q audit.Query) []audit.Record {
	t.Helper()
	if q.Limit == 0 {
		q.Limit = audit.MaxRecords
	}
	got, err := log.Records(t.Context(), sel, q)
	if err != nil {
		t.Fatalf("records: %v", err)
	}
	return got
}

func logDiff(t *testing.T, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func logJSON(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
