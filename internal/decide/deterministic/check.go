package deterministic

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"palimpsest/internal/decide"
	"palimpsest/pkg/events"
)

// Bounds of what a candidate may say that it ends.
const (
	maxName   = 256       // bytes, of a subject or predicate
	maxObject = 256 << 10 // bytes, as an episode may have
)

// check refuses a candidate that no fact could be made of.
func check(c events.Candidate, known decide.Known) error {
	field, reason := "", ""
	switch {
	case strings.TrimSpace(c.Text) == "":
		field, reason = "text", "is required"
	case !c.Kind.Valid() && c.Intent == "":
		field, reason = "kind", "is no kind of fact"
	case !(c.Confidence >= 0 && c.Confidence <= 1):
		field, reason = "confidence", "is outside [0,1]"
	case c.RuleID == "":
		field, reason = "rule_id", "is required"
	case slices.Contains(c.SourceEpisodeIDs, ""), len(c.SourceEpisodeIDs) == 0 && known.RequestID == "":
		field, reason = "source_episode_ids", "must name episodes"
	default:
		field, reason = checkEnds(c)
	}
	if field == "" {
		return nil
	}
	return &decide.InvalidCandidateError{CandidateID: c.ID, Field: field, Reason: reason}
}

// checkEnds looks at what a candidate says that it ends or moves. It returns the first
// field that is wrong, and why; empty for none.
func checkEnds(c events.Candidate) (field, reason string) {
	if len(c.Retracts) > events.MaxRetracts {
		return "retracts", "has " + strconv.Itoa(len(c.Retracts)) + " members, more than " + strconv.Itoa(events.MaxRetracts)
	}
	for i, t := range c.Retracts {
		at := "retracts[" + strconv.Itoa(i) + "]"
		switch {
		case t.Subject == "":
			return at + ".subject", "is required"
		case t.Predicate == "" && t.Object == "":
			return at, "needs a predicate or an object"
		}
		for _, m := range []struct{ name, value string }{{".subject", t.Subject}, {".predicate", t.Predicate}} {
			if why := misspelt(m.value); why != "" {
				return at + m.name, why
			}
		}
		if len(t.Object) > maxObject {
			return at + ".object", tooLong(len(t.Object), maxObject)
		}
	}
	switch {
	case !c.Moves:
		return "", ""
	case c.Negated:
		return "moves", "excludes negated"
	case c.Object == "":
		return "moves", "needs an object"
	}
	return "", ""
}

// misspelt says why no fact has such a name; empty where one may.
func misspelt(name string) string {
	switch {
	case len(name) > maxName:
		return tooLong(len(name), maxName)
	case !utf8.ValidString(name):
		return "is not valid UTF-8"
	case strings.ContainsFunc(name, unicode.IsControl):
		return "has a control character"
	}
	return ""
}

func tooLong(have, most int) string {
	return "has " + strconv.Itoa(have) + " bytes, more than " + strconv.Itoa(most)
}
