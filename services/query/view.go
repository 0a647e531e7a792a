package query

import (
	"time"

	"palimpsest/internal/audit"
	"palimpsest/internal/memory"
	"palimpsest/internal/store"
	"palimpsest/pkg/api"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

func viewEpisode(e memory.Episode) api.Episode {
	return api.Episode{
		ID: e.ID, Scope: api.ScopeOf(e.Scope), Role: string(e.Role), Content: e.Content, Timestamp: e.Timestamp,
		Clamped: e.Clamped, ArrivedAt: e.ArrivedAt, SourceNode: e.SourceNode, Metadata: e.Metadata,
		Mode: string(e.Mode), Ordinal: e.Ordinal,
	}
}

// viewFact shows a stored fact; its confidence is evaluated at now, with the
// reinforcement of its accesses.
func viewFact(f store.Fact, now time.Time) api.Fact {
	out := viewVersion(f.Fact, f.Scope)
	out.Confidence = memory.Confidence(f.Strength, f.DecayRate, f.LastAccessed, now)
	out.AccessCount, out.LastAccessed = f.AccessCount, f.LastAccessed
	return out
}

// viewVersion shows a version as it was committed, with its base confidence.
func viewVersion(f events.Fact, s scope.Scope) api.Fact {
	return api.Fact{
		ID: f.ID, Revision: f.Revision, Scope: api.ScopeOf(s), Kind: string(f.Kind), Category: f.Category,
		Subject: f.Subject, Predicate: f.Predicate, Object: f.Object, Text: f.Text, Hash: f.Hash,
		Metadata: f.Metadata, Confidence: f.Confidence, Confirmed: f.Confirmed, Sensitivity: string(f.Sensitivity),
		EventTime: f.EventTime, CreatedAt: f.CreatedAt, UpdatedAt: f.UpdatedAt, ValidFrom: f.ValidFrom,
		ValidUntil: f.ValidUntil, ArchivedAt: f.ArchivedAt, SourceType: string(f.SourceType),
		SourceRole: string(f.SourceRole), SessionIDs: f.SessionIDs, SourceEpisodeIDs: f.SourceEpisodeIDs,
		EvidenceQuote: f.EvidenceQuote, RuleID: f.RuleID, Supersedes: f.Supersedes, SupersededBy: f.SupersededBy,
		EntityIDs: f.EntityIDs, LastAccessed: f.CreatedAt,
	}
}

func viewChange(r audit.Record) api.Change {
	out := api.Change{
		Scope: api.ScopeOf(r.Scope), Revision: r.Revision, Index: r.Index, Sequence: r.Sequence, DeltaID: r.DeltaID,
		Event: changeOf(r), Reason: string(r.Reason), Rule: r.Rule, RuleID: r.RuleID, DecidedBy: r.DecidedBy,
		Confidence: r.Confidence, Sources: r.Sources, RequestID: r.RequestID, CorrelationID: r.CorrelationID,
		EventTime: r.EventTime, AppliedAt: r.AppliedAt,
	}
	if r.Before != nil {
		before := viewVersion(*r.Before, r.Scope)
		out.Before, out.OldMemory = &before, before.Text
	}
	if r.After != nil {
		after := viewVersion(*r.After, r.Scope)
		out.After = &after
		if r.Kind != events.DeltaDelete { // a closed fact has no new text
			out.NewMemory = after.Text
		}
	}
	return out
}

func changeOf(r audit.Record) string {
	switch r.Kind {
	case events.DeltaAdd:
		if r.FactID != "" && r.After == nil { // of a hold, which changes nothing
			return string(events.ChangeNone)
		}
		return string(events.ChangeAdd)
	case events.DeltaUpdate:
		return string(events.ChangeUpdate)
	case events.DeltaDelete:
		return string(events.ChangeDelete)
	case events.DeltaNoop:
	}
	return string(events.ChangeNone)
}

func viewResults(outcomes []events.Outcome) []api.Result {
	out := []api.Result{}
	for _, o := range outcomes {
		for _, r := range o.Results {
			out = append(out, api.Result{
				Event: string(r.Event), ID: r.FactID, Revision: r.Revision, Memory: r.Memory, OldMemory: r.OldMemory,
				Reason: string(r.Reason), Rule: o.Rule, DeltaID: r.DeltaID,
			})
		}
	}
	return out
}
