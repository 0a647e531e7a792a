package store

import (
	"slices"
	"time"

	"palimpsest/internal/filter"
	"palimpsest/internal/memory"
)

// Filter keeps the rows that match an expression over [filter.Memory]. Nil keeps
// all. It applies before the limit of a read: a backend that cannot express all of
// it reads on until it has enough rows that match, or no more.
type Filter struct {
	Expr filter.Expr
	// Now is when the confidence of a fact is evaluated.
	Now time.Time
}

// KeepsFact reports whether f matches.
func (x *Filter) KeepsFact(f *Fact) bool { return x == nil || filter.Match(x.Expr, FactRow(f, x.Now)) }

// KeepsEpisode reports whether e matches.
func (x *Filter) KeepsEpisode(e *memory.Episode) bool {
	return x == nil || filter.Match(x.Expr, EpisodeRow(e))
}

// Facts removes from list what does not match.
func (x *Filter) Facts(list []Fact) []Fact {
	if x == nil {
		return list
	}
	return slices.DeleteFunc(list, func(f Fact) bool { return !x.KeepsFact(&f) })
}

// Episodes removes from list what does not match.
func (x *Filter) Episodes(list []memory.Episode) []memory.Episode {
	if x == nil {
		return list
	}
	return slices.DeleteFunc(list, func(e memory.Episode) bool { return !x.KeepsEpisode(&e) })
}

// Hits removes from list what does not match.
func (x *Filter) Hits(list []Hit) []Hit {
	if x == nil {
		return list
	}
	return slices.DeleteFunc(list, func(h Hit) bool {
		if h.Fact != nil {
			return !x.KeepsFact(h.Fact)
		}
		return !x.KeepsEpisode(h.Episode)
	})
}

// FactRow is a fact as filters see it. Its confidence is that of an instant, after
// decay.
func FactRow(f *Fact, now time.Time) filter.Row {
	return func(field string) any {
		switch field {
		case "type":
			return "fact"
		case "id":
			return f.ID
		case "text":
			return f.Text
		case "user":
			return f.Scope.User
		case "agent":
			return f.Scope.Agent
		case "session":
			return f.SessionIDs
		case "role":
			return string(f.SourceRole)
		case "kind":
			return string(f.Kind)
		case "category":
			return f.Category
		case "subject":
			return f.Subject
		case "predicate":
			return f.Predicate
		case "object":
			return f.Object
		case "hash":
			return f.Hash
		case "cardinality":
			return string(f.Cardinality)
		case "sensitivity":
			return string(f.Sensitivity)
		case "evidence_quote":
			return f.EvidenceQuote
		case "source_type":
			return string(f.SourceType)
		case "rule_id":
			return f.RuleID
		case "source_episode_ids":
			return f.SourceEpisodeIDs
		case "entity_ids":
			return f.EntityIDs
		case "supersedes":
			return f.Supersedes
		case "superseded_by":
			return f.SupersededBy
		case "revision":
			return f.Revision
		case "confidence":
			return memory.Confidence(f.Strength, f.DecayRate, f.LastAccessed, now)
		case "access_count":
			return f.AccessCount
		case "confirmed":
			return f.Confirmed
		case "metadata":
			return f.Metadata
		}
		return f.instant(field)
	}
}

// instant is a field that holds a time, nil for none.
func (f *Fact) instant(field string) any {
	switch field {
	case "event_time":
		return f.EventTime
	case "created_at":
		return f.CreatedAt
	case "updated_at":
		return f.UpdatedAt
	case "valid_from":
		return f.ValidFrom
	case "valid_until":
		if f.ValidUntil != nil {
			return *f.ValidUntil
		}
	case "archived_at":
		if f.ArchivedAt != nil {
			return *f.ArchivedAt
		}
	case "last_accessed":
		return f.LastAccessed
	}
	return nil
}

// EpisodeRow is an episode as filters see it.
func EpisodeRow(e *memory.Episode) filter.Row {
	return func(field string) any {
		switch field {
		case "type":
			return "episode"
		case "id":
			return e.ID
		case "text":
			return e.Content
		case "user":
			return e.Scope.User
		case "agent":
			return e.Scope.Agent
		case "session":
			return e.Scope.Session
		case "role":
			return string(e.Role)
		case "event_time":
			return e.Timestamp
		case "created_at":
			return e.ArrivedAt
		case "source_node":
			return e.SourceNode
		case "mode":
			return string(e.Mode)
		case "ordinal":
			return e.Ordinal
		case "metadata":
			return e.Metadata
		}
		return nil
	}
}

// OfFact and OfEpisode evaluate a condition on a field that is the same for every
// fact, or for every episode; ok is false where it is not.
func OfFact(c filter.Cond) (match, ok bool) { return constant(c, "fact", factFields) }

// OfEpisode is OfFact for episodes.
func OfEpisode(c filter.Cond) (match, ok bool) { return constant(c, "episode", episodeFields) }

func constant(c filter.Cond, kind string, fields []string) (match, ok bool) {
	if slices.Contains(fields, c.Field.Name) {
		return false, false
	}
	return filter.Match(c, func(field string) any {
		if field == "type" {
			return kind
		}
		return nil
	}), true
}

// The fields that differ between facts, and those that differ between episodes.
var (
	factFields = []string{
		"id", "text", "user", "agent", "session", "role", "event_time", "created_at", "kind", "category", "subject", "predicate", "object", "hash",
		"cardinality", "sensitivity", "evidence_quote", "source_type", "rule_id", "source_episode_ids", "entity_ids", "supersedes", "superseded_by",
		"revision", "confidence", "access_count", "confirmed", "updated_at", "valid_from", "valid_until", "archived_at", "last_accessed", "metadata",
	}
	episodeFields = []string{
		"id", "text", "user", "agent", "session", "role", "event_time", "created_at", "source_node", "mode", "ordinal", "metadata",
	}
)
