package audit_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"palimpsest/internal/audit"
	"palimpsest/internal/audit/audittest"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

func TestRecords(t *testing.T) {
	t.Parallel()
	s := scope.Scope{Project: "p", User: "u"}
	story := audittest.LogStory(s, 2, 5)
	before, after := story[0].Data.Facts[0], story[1].Data.Facts[0]
	at := time.Date(2026, 3, 1, 12, 2, 0, 0, time.UTC)
	want := []audit.Record{
		{
			Scope: s, Revision: 2, Index: 0, Sequence: 10, DeltaID: "update-2", Kind: events.DeltaUpdate, Reason: events.ReasonRefinement,
			Rule: "sleep", RuleID: "pattern", DecidedBy: "rules@v1", Confidence: 0.5, FactID: "fact", Before: &before, After: &after,
			Sources: []string{"episode-2"}, CandidateID: "candidate", CorrelationID: "request-2", EventTime: at, DecidedAt: at, AppliedAt: at,
		},
		{
			Scope: s, Revision: 2, Index: 1, Sequence: 10, DeltaID: "noop-2", Kind: events.DeltaNoop, Reason: events.ReasonTransient,
			Rule: "sleep", RuleID: "pattern", DecidedBy: "rules@v1", Confidence: 0.5,
			Sources: []string{"episode-2"}, CandidateID: "candidate", CorrelationID: "request-2", DecidedAt: at, AppliedAt: at,
		},
	}
	if diff := cmp.Diff(want, audit.Records(story[1])); diff != "" {
		t.Error(diff)
	}
	story[1].Data.Outcomes = nil
	if got := audit.Records(story[1])[0].CorrelationID; got != "message-2" {
		t.Errorf("without an outcome the correlation is %q, want the message's", got)
	}
}
