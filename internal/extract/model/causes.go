package model

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"palimpsest/internal/extract"
	"palimpsest/internal/llm"
	"palimpsest/internal/memory"
	"palimpsest/pkg/events"
)

const (
	// maxPairs bounds the pairs that one run looks at, the newest.
	maxPairs = 50
	// leastCause is the confidence from which a pair counts.
	leastCause = 0.7
	// maxCauseText bounds what the prompt and a candidate show of an episode, in bytes.
	maxCauseText = 400
)

// Causes asks a model whether of two consecutive episodes of a user one caused the
// other. It is safe for concurrent use.
type Causes struct {
	model llm.Model
	cfg   Config
}

var _ extract.Extractor = (*Causes)(nil)

// NewCauses returns such an extractor. Of cfg it takes MaxTokens.
func NewCauses(m llm.Model, cfg Config) *Causes {
	cfg.MaxTokens = cmp.Or(cfg.MaxTokens, 4000)
	return &Causes{model: m, cfg: cfg}
}

// Name implements [extract.Extractor].
func (x *Causes) Name() string { return "llm:" + x.model.Info().Model + "/causes@" + version }

// Extract implements [extract.Extractor]. A candidate relates the ids of two episodes.
// An error that [llm.Paused] knows passes.
func (x *Causes) Extract(ctx context.Context, episodes []memory.Episode, in extract.Context) ([]events.Candidate, error) {
	turns := turnsOf(episodes, in.Before)
	if len(turns) == 0 {
		return nil, ctx.Err()
	}
	user := linesOf(turns)
	reply, err := x.model.Complete(ctx, llm.Request{
		Scope: in.Scope, System: strings.TrimSpace(cmp.Or(in.Prompt, prompt("causes.txt"))), User: user, Identity: version + " causes " + in.Rule + "\n" + user,
		Schema: causeSchema, Name: "causes", MaxTokens: x.cfg.MaxTokens,
		Accept: func(r llm.Reply) error { _, err := llm.Items(r.Text, "causes"); return err },
	})
	if llm.Unusable(err) {
		return nil, &extract.UnusableError{Reply: reply.Text, Err: err}
	}
	if err != nil {
		return nil, fmt.Errorf("ask the model: %w", err)
	}
	all, err := llm.Decode[cause](reply.Text, "causes")
	if err != nil {
		return nil, &extract.UnusableError{Reply: reply.Text, Err: err}
	}
	var out []events.Candidate
	seen := map[int]bool{}
	for _, c := range all {
		if c.Effect < 2 || c.Effect > len(turns) || seen[c.Effect] || !(c.Confidence >= leastCause && c.Confidence <= 1) {
			continue
		}
		earlier, later := turns[c.Effect-2], turns[c.Effect-1]
		if earlier.Scope.Session != later.Scope.Session {
			continue
		}
		seen[c.Effect] = true
		out = append(out, x.candidate(earlier, later, c.Confidence, in.Rule))
	}
	slices.SortStableFunc(out, func(a, b events.Candidate) int { return cmp.Compare(a.Ordinal, b.Ordinal) })
	return out, nil
}

// cause is a pair as the model returns it.
type cause struct {
	Effect     int     `json:"effect"`
	Confidence float64 `json:"confidence"`
}

func (x *Causes) candidate(earlier, later memory.Episode, confidence float64, rule string) events.Candidate {
	c := events.Candidate{
		ID:   events.HashID(rule, x.Name(), later.Scope.Project, later.Scope.Key(), earlier.ID, later.ID),
		Kind: events.FactRelation, Category: extract.CategoryCausal, Subject: earlier.ID, Predicate: "causes", Object: later.ID,
		Text: clipped(earlier) + " → " + clipped(later), EvidenceQuote: clipped(later), Confidence: confidence, Explicit: true,
		Sensitivity: events.SensitivityNone, Cardinality: events.Many, SourceEpisodeIDs: []string{earlier.ID, later.ID}, Ordinal: later.Ordinal,
		SourceRole: later.Role, EventTime: later.Timestamp, Extractor: x.Name(), RuleID: "llm.causes",
	}
	if later.Scope.Session != "" {
		c.SessionIDs = []string{later.Scope.Session}
	}
	return c
}

// turnsOf are the user's episodes of the newest pairs, by session. The last turn before
// the range makes a pair with the first of its session.
func turnsOf(episodes, before []memory.Episode) []memory.Episode {
	var order []string
	bySession := map[string][]memory.Episode{}
	own := map[string]int{} // the user's turns of a session within the range
	for i, e := range slices.Concat(before, episodes) {
		if e.Role != events.RoleUser || e.Mode == events.ModeIncognito || !extract.Plain(e) || memory.BlankContext(e.Content) == "" {
			continue
		}
		session := e.Scope.Session
		if _, known := bySession[session]; !known {
			order = append(order, session)
		}
		if i < len(before) {
			bySession[session] = []memory.Episode{e}
			continue
		}
		bySession[session] = append(bySession[session], e)
		own[session]++
	}
	var out []memory.Episode
	pairs := maxPairs
	for _, session := range slices.Backward(order) {
		turns := bySession[session]
		if own[session] == 0 || len(turns) < 2 || pairs == 0 {
			continue
		}
		turns = turns[max(0, len(turns)-1-pairs):]
		pairs -= len(turns) - 1
		out = append(slices.Clone(turns), out...)
	}
	return out
}

// linesOf renders turns as numbered lines.
func linesOf(turns []memory.Episode) string {
	var b strings.Builder
	b.WriteString("<lines>\n")
	for i, e := range turns {
		if i > 0 && turns[i-1].Scope.Session != e.Scope.Session {
			b.WriteByte('\n')
		}
		b.WriteString(strconv.Itoa(i+1) + ". [" + e.Timestamp.Format("2006-01-02 15:04") + "] " + oneLine(clipped(e)) + "\n")
	}
	b.WriteString("</lines>")
	return b.String()
}

// clipped is the beginning of an episode's text, as it stands.
func clipped(e memory.Episode) string {
	text := strings.TrimSpace(memory.BlankContext(e.Content))
	if len(text) <= maxCauseText {
		return text
	}
	text = text[:maxCauseText]
	for !utf8.ValidString(text) {
		text = text[:len(text)-1]
	}
	return text
}

var causeSchema = listSchema("causes", map[string]any{
	"effect": map[string]any{"type": "integer"}, "confidence": map[string]any{"type": "number"},
})
