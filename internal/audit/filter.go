package audit

import (
	"slices"

	"palimpsest/internal/filter"
	"palimpsest/pkg/events"
)

// Holds reports whether one of the records of an effect matches e, an expression
// over [filter.Audit]. Nil matches every effect, also one without records.
func Holds(effect events.Event[events.EffectCommitted], e filter.Expr) bool {
	return e == nil || slices.ContainsFunc(Records(effect), func(r Record) bool { return filter.Match(e, Row(&r)) })
}

// Row gives the values of a record by the fields of [filter.Audit].
func Row(r *Record) filter.Row {
	return func(field string) any {
		switch field {
		case "user":
			return r.Scope.User
		case "agent":
			return r.Scope.Agent
		case "session":
			return r.Scope.Session
		case "revision":
			return r.Revision
		case "index":
			return r.Index
		case "sequence":
			return r.Sequence
		case "kind":
			return string(r.Kind)
		case "reason":
			return string(r.Reason)
		case "rule":
			return r.Rule
		case "rule_id":
			return r.RuleID
		case "decided_by":
			return r.DecidedBy
		case "confidence":
			return r.Confidence
		case "source_episode_ids":
			return r.Sources
		case "event_time":
			return r.EventTime
		case "decided_at":
			return r.DecidedAt
		case "applied_at":
			return r.AppliedAt
		}
		return r.identifier(field)
	}
}

// identifier is a field that holds an id, nil for another.
func (r *Record) identifier(field string) any {
	switch field {
	case "delta_id":
		return r.DeltaID
	case "fact_id":
		return r.FactID
	case "request_id":
		return r.RequestID
	case "candidate_id":
		return r.CandidateID
	case "correlation_id":
		return r.CorrelationID
	}
	return nil
}
