package extract

import (
	"slices"
	"strings"
	"unicode/utf8"

	"palimpsest/internal/lex"
	"palimpsest/internal/memory"
	"palimpsest/pkg/events"
)

// A session is summarised if the user spoke in so many turns, or used so many words:
// 150 are some 200 tokens.
const (
	summaryTurns = 3
	summaryWords = 150
)

// summaryLines is how many statements a summary holds at most, and summaryQuote how
// long one that is quoted may be, in runes.
const (
	summaryLines = 5
	summaryQuote = 160
)

// Summary returns what was said in a session, without a model: the statements that
// were found in it, of a session without any the user's first message. Nothing
// sensitive, unsafe or passing is in it, and no guess. ok is false for a session
// that is too short, and for one of which nothing is left.
func Summary(said []memory.Episode, found []events.Candidate, rule string) (c events.Candidate, ok bool) {
	var turns []memory.Episode
	words := 0
	for _, e := range said {
		if e.Role == events.RoleUser {
			turns = append(turns, e)
			words += len(lex.Words(e.Content))
		}
	}
	if len(turns) == 0 || len(turns) < summaryTurns && words < summaryWords {
		return events.Candidate{}, false
	}
	last := said[len(said)-1]
	c = events.Candidate{
		ID:   events.HashID(rule, "summary", last.Scope.Project, last.Scope.Key(), last.ID),
		Kind: events.FactSummary, Category: "summary", Subject: "session " + last.Scope.Session, Predicate: "summary",
		Confidence: 0.8, Explicit: true, Sensitivity: events.SensitivityNone, Cardinality: events.One,
		EventTime: last.Timestamp, Ordinal: last.Ordinal, SourceRole: events.RoleSystem, RuleID: "summary",
		SessionIDs: []string{last.Scope.Session},
	}
	var lines []string
	add := func(line, quote string, sources ...string) {
		lines = append(lines, line)
		if c.EvidenceQuote == "" {
			c.EvidenceQuote = quote
		}
		for _, id := range sources {
			if !slices.Contains(c.SourceEpisodeIDs, id) {
				c.SourceEpisodeIDs = append(c.SourceEpisodeIDs, id)
			}
		}
	}
	private := false
	for _, f := range found {
		private = private || f.Sensitivity == events.SensitivitySensitive
		plain := f.Explicit && !f.Hedged && !f.Transient && !f.Unsafe && f.Sensitivity != events.SensitivitySensitive
		if plain && f.Kind == events.FactSemantic && len(lines) < summaryLines && !slices.Contains(lines, f.Text) {
			add(f.Text, f.EvidenceQuote, f.SourceEpisodeIDs...)
		}
	}
	if quote := clip(turns[0].Content); len(lines) == 0 && !private && quote != "" {
		add("The user wrote: \""+quote+"\"", quote, turns[0].ID)
	}
	if len(lines) == 0 {
		return events.Candidate{}, false
	}
	c.Object = strings.Join(lines, " ")
	c.Text = "Session of " + last.Timestamp.Format("2 January 2006") + ": " + c.Object
	return c, true
}

// clip is the first line of a text, at most summaryQuote runes of it.
func clip(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	for utf8.RuneCountInString(line) > summaryQuote {
		at := strings.LastIndexByte(line, ' ')
		if at < 0 {
			return ""
		}
		line = line[:at]
	}
	return strings.TrimSpace(line)
}
