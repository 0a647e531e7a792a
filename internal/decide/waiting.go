package decide

import (
	"slices"
	"strings"
	"time"

	"palimpsest/internal/lex"
	"palimpsest/pkg/events"
)

// Waiting is a candidate that the write policy holds.
type Waiting struct {
	events.Candidate
	// Why is the reason of the verdict to hold it.
	Why string
	// Since is when the buffer took it; zero for a new one.
	Since time.Time
}

// Settlement is what becomes of waiting candidates.
type Settlement struct {
	// Promoted go on to the decision, Kept stay in the buffer, Expired are given up.
	Promoted, Kept, Expired []Waiting
}

// The thresholds of support, and how many candidates of a scope wait at most.
const (
	hedgedTurns     = 2
	proceduralTurns = 3
	sameTurn        = 0.9 // texts that overlap as much are one statement
	supporting      = 0.5 // overlap of evidence that supports
	maxWaiting      = 100
)

// Settle promotes and expires waiting candidates, oldest first, by their support:
// the candidates of the same episodes that do not wait. Ended reports
// whether all sessions of a candidate are over; one without a session has none that
// ends. A hedged candidate is promoted when two user turns say it, an implicit
// instruction when three do. Any other is promoted at the end of its session, if
// another user turn or the summary of the session supports it. A candidate that is not
// promoted by then expires, and so does the oldest of more than 100.
func Settle(waiting []Waiting, said []events.Candidate, ended func(Waiting) bool) Settlement {
	b := buffer{said: said}
	for _, w := range waiting {
		b.all = append(b.all, w.Candidate)
	}
	b.all = append(b.all, said...)
	var out Settlement
	for _, w := range waiting {
		over := ended(w)
		switch {
		case b.promotes(w, over):
			w.Hedged = false
			out.Promoted = append(out.Promoted, w)
		case over:
			out.Expired = append(out.Expired, w)
		default:
			out.Kept = append(out.Kept, w)
		}
	}
	if n := len(out.Kept) - maxWaiting; n > 0 {
		out.Expired = append(out.Expired, out.Kept[:n]...)
		out.Kept = out.Kept[n:]
	}
	return out
}

// buffer is what candidates are supported by.
type buffer struct{ all, said []events.Candidate }

func (b buffer) promotes(w Waiting, over bool) bool {
	switch {
	case w.Why == whyHedged:
		return b.turns(w.Candidate) >= hedgedTurns
	case w.Kind == events.FactProcedural && w.Why == whyImplicit:
		return b.turns(w.Candidate) >= proceduralTurns
	case over || len(w.SessionIDs) == 0:
		return b.supported(w.Candidate) || b.summarized(w.Candidate)
	}
	return false
}

// turns counts the user turns that say what c says, in different words each.
func (b buffer) turns(c events.Candidate) int {
	var texts []lex.Set
	var episodes []string
	for _, other := range b.all {
		if other.SourceRole != events.RoleUser || !sameMeaning(c, other) || slices.ContainsFunc(other.SourceEpisodeIDs, func(id string) bool { return slices.Contains(episodes, id) }) {
			continue
		}
		words := lex.NewSet(other.EvidenceQuote)
		if slices.ContainsFunc(texts, func(t lex.Set) bool { return lex.Jaccard(t, words) >= sameTurn }) {
			continue
		}
		texts, episodes = append(texts, words), append(episodes, other.SourceEpisodeIDs...)
	}
	return len(texts)
}

// supported reports whether another user turn says what c says, or nearly.
func (b buffer) supported(c events.Candidate) bool {
	words := lex.NewSet(c.EvidenceQuote)
	return slices.ContainsFunc(b.all, func(other events.Candidate) bool {
		if other.SourceRole != events.RoleUser || slices.ContainsFunc(other.SourceEpisodeIDs, func(id string) bool { return slices.Contains(c.SourceEpisodeIDs, id) }) {
			return false
		}
		overlap := lex.Jaccard(lex.NewSet(other.EvidenceQuote), words)
		return overlap < sameTurn && (sameMeaning(c, other) || overlap >= supporting)
	})
}

// summarized reports whether the summary of a session of c names its subject and
// object. Every summary is about the user.
func (b buffer) summarized(c events.Candidate) bool {
	return c.Object != "" && slices.ContainsFunc(b.said, func(s events.Candidate) bool {
		if s.Kind != events.FactSummary || !slices.ContainsFunc(s.SessionIDs, func(id string) bool { return slices.Contains(c.SessionIDs, id) }) {
			return false
		}
		words := lex.Words(s.Text)
		names := func(phrase string) bool { return hasRun(words, lex.Words(phrase)) }
		return names(c.Object) && (strings.HasPrefix(c.Subject, "user") || names(c.Subject))
	})
}

// sameMeaning reports whether candidates state the same triple, or without triples
// the same text.
func sameMeaning(a, b events.Candidate) bool {
	if a.Negated != b.Negated || a.Kind != b.Kind {
		return false
	}
	if a.Subject == "" || a.Predicate == "" {
		return lex.Jaccard(lex.NewSet(a.Text), lex.NewSet(b.Text)) >= sameTurn
	}
	return a.Subject == b.Subject && a.Predicate == b.Predicate && lex.Object(a.Object) == lex.Object(b.Object)
}
