package model

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"palimpsest/internal/extract"
	"palimpsest/internal/llm"
	"palimpsest/internal/memory"
	"palimpsest/pkg/events"
)

// version changes with the prompts and the reading of replies.
const version = "1"

const (
	// maxTurns is how many user turns one call covers.
	maxTurns = 25
	// maxBytes bounds the text of one call: some 8,000 tokens of English, 16,000 of
	// scripts whose characters take several bytes. A single longer episode is cut.
	maxBytes = 32 << 10
	// maxKnown bounds the known facts of one call.
	maxKnown = 60
)

// Config of the extractor. A zero value stands for its default.
type Config struct {
	// Task replaces the part of the prompt that says what counts as a fact.
	Task string
	// MaxTokens bounds a reply; default 4000.
	MaxTokens int
}

// Extractor asks a model. It is safe for concurrent use.
type Extractor struct {
	model llm.Model
	rules extract.Extractor
	cfg   Config
}

var _ extract.Extractor = (*Extractor)(nil)

// New returns an extractor. rules extracts episodes that need no reading: those
// whose publisher named subject and predicate, an intent, or wants them verbatim.
func New(m llm.Model, rules extract.Extractor, cfg Config) *Extractor {
	cfg.MaxTokens = cmp.Or(cfg.MaxTokens, 4000)
	return &Extractor{model: m, rules: rules, cfg: cfg}
}

// Name implements [extract.Extractor].
func (x *Extractor) Name() string { return "llm:" + x.model.Info().Model + "@" + version }

// Extract implements [extract.Extractor]. An error that [llm.Paused] knows passes.
func (x *Extractor) Extract(ctx context.Context, episodes []memory.Episode, in extract.Context) ([]events.Candidate, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var known []events.Fact
	if in.Known != nil {
		var err error
		if known, err = in.Known(ctx); err != nil {
			return nil, fmt.Errorf("read known facts: %w", err)
		}
	}
	var out []events.Candidate
	for _, p := range parts(episodes, in.Before) {
		found, err := x.part(ctx, p, known, in)
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	for _, e := range episodes {
		if !extract.Plain(e) {
			found, err := x.rules.Extract(ctx, []memory.Episode{e}, in)
			if err != nil {
				return nil, err
			}
			out = append(out, found...)
		}
	}
	slices.SortStableFunc(out, func(a, b events.Candidate) int { return cmp.Compare(a.Ordinal, b.Ordinal) })
	return out, nil
}

// part is what one call covers: consecutive episodes of a session.
type part struct {
	before, episodes []memory.Episode
}

// parts cuts episodes by session and at the bounds of a call. Those without a word
// of the user's are not worth a call.
func parts(episodes, before []memory.Episode) []part {
	var order []string
	bySession, turns := map[string][]memory.Episode{}, map[string][]memory.Episode{}
	for _, e := range before {
		turns[e.Scope.Session] = append(turns[e.Scope.Session], e)
	}
	for _, e := range episodes {
		if e.Mode == events.ModeIncognito || !extract.Plain(e) {
			continue
		}
		if _, seen := bySession[e.Scope.Session]; !seen {
			order = append(order, e.Scope.Session)
		}
		bySession[e.Scope.Session] = append(bySession[e.Scope.Session], e)
	}
	var out []part
	for _, session := range order {
		earlier := turns[session]
		for rest := bySession[session]; len(rest) > 0; {
			n, users := bound(rest)
			if users > 0 {
				out = append(out, part{before: earlier[max(0, len(earlier)-extract.ContextTurns):], episodes: rest[:n]})
			}
			earlier, rest = append(earlier[:len(earlier):len(earlier)], rest[:n]...), rest[n:]
		}
	}
	return out
}

// bound is how many of the episodes one call takes, and how many are the user's.
func bound(episodes []memory.Episode) (n, users int) {
	bytes := 0
	for n < len(episodes) {
		e := episodes[n]
		if e.Role == events.RoleUser && users == maxTurns || n > 0 && bytes+len(e.Content) > maxBytes {
			break
		}
		if e.Role == events.RoleUser {
			users++
		}
		bytes += len(e.Content)
		n++
	}
	return n, users
}

// part asks for the facts of one part.
func (x *Extractor) part(ctx context.Context, p part, known []events.Fact, in extract.Context) ([]events.Candidate, error) {
	user, err := p.ask(of(known, p.episodes))
	if err != nil {
		return nil, fmt.Errorf("render the prompt: %w", err)
	}
	// The known facts are not part of the identity: a redelivered tick gets the first
	// reply, and the decider drops candidates that repeat known facts.
	identity, err := p.ask(nil)
	if err != nil {
		return nil, fmt.Errorf("render the prompt: %w", err)
	}
	reply, err := x.model.Complete(ctx, llm.Request{
		Scope: in.Scope, System: instruction(cmp.Or(in.Prompt, x.cfg.Task)), User: user,
		Identity: version + " " + in.Rule + "\n" + identity, Schema: schema, Name: "facts", MaxTokens: x.cfg.MaxTokens,
		Accept: func(r llm.Reply) error { _, err := read(r); return err },
	})
	if llm.Unusable(err) {
		return nil, &extract.UnusableError{Reply: reply.Text, Err: err}
	}
	if err != nil {
		return nil, fmt.Errorf("ask the model: %w", err)
	}
	facts, err := read(reply)
	if err != nil {
		return nil, &extract.UnusableError{Reply: reply.Text, Err: err}
	}
	return x.candidates(p, facts, in.Rule), nil
}

// of keeps the facts that rest on one of the episodes, newest last.
func of(known []events.Fact, episodes []memory.Episode) []events.Fact {
	var out []events.Fact
	for _, f := range known {
		if slices.ContainsFunc(episodes, func(e memory.Episode) bool { return slices.Contains(f.SourceEpisodeIDs, e.ID) }) {
			out = append(out, f)
		}
	}
	return out[max(0, len(out)-maxKnown):]
}

// read reads the facts of a reply. A fact that is no fact is left out.
func read(reply llm.Reply) ([]told, error) {
	return llm.Decode[told](reply.Text, "facts")
}

// candidates makes candidates of what the model told, each under the episode that
// holds its quote.
func (x *Extractor) candidates(p part, facts []told, rule string) []events.Candidate {
	var out []events.Candidate
	position := map[string]int{}
	for _, f := range facts {
		e, quote, ok := p.ground(f)
		if !ok {
			continue
		}
		c, ok := f.candidate(e, quote)
		if !ok {
			continue
		}
		c.Extractor, c.RuleID = x.Name(), "llm"
		c.ID = events.HashID(rule, x.Name(), e.Scope.Project, e.Scope.Key(), e.Source, e.ID, strconv.Itoa(position[e.ID]))
		position[e.ID]++
		out = append(out, c)
	}
	return out
}

// ground finds the user episode that a quote stands in: the one that the model
// names, or else the only one.
func (p part) ground(f told) (e memory.Episode, quote string, ok bool) {
	if i := f.Line - 1; i >= 0 && i < len(p.episodes) {
		e = p.episodes[i]
		if quote, ok = extract.Ground(memory.BlankContext(e.Content), f.Quote); ok && e.Role == events.RoleUser {
			return e, quote, true
		}
	}
	found := 0
	for _, candidate := range p.episodes {
		if candidate.Role != events.RoleUser {
			continue
		}
		if q, in := extract.Ground(memory.BlankContext(candidate.Content), f.Quote); in {
			e, quote = candidate, q
			found++
		}
	}
	return e, quote, found == 1
}

// candidate is what the model told, in the terms of candidates.
func (f told) candidate(e memory.Episode, quote string) (events.Candidate, bool) {
	text := strings.TrimSpace(f.Text)
	if text == "" || strings.TrimSpace(f.Subject) == "" || strings.TrimSpace(f.Predicate) == "" {
		return events.Candidate{}, false
	}
	c := events.Candidate{
		Kind: events.FactKind(f.Kind), Category: cmp.Or(strings.TrimSpace(f.Category), "biography"),
		Subject: subject(f.Subject), Predicate: predicate(f.Predicate), Object: strings.TrimSpace(f.Object),
		Text: text, EvidenceQuote: quote, Confidence: min(max(f.Confidence, 0), 1),
		Explicit: f.Explicit, Hedged: f.Hedged, Transient: f.Transient, Negated: f.Negated,
		Sensitivity: events.Sensitivity(f.Sensitive), Cardinality: events.Many,
		SourceEpisodeIDs: []string{e.ID}, Ordinal: e.Ordinal, SourceRole: e.Role, EventTime: e.Timestamp,
		ValidFrom: dateOf(f.Since, e.Timestamp), ValidUntil: dateOf(f.Until, e.Timestamp), Metadata: extract.Inherited(e),
	}
	if e.Scope.Session != "" {
		c.SessionIDs = []string{e.Scope.Session}
	}
	if !c.Kind.Valid() || c.Kind == events.FactSummary || c.Kind == events.FactRelation {
		c.Kind = events.FactSemantic
	}
	if f.Cardinality == string(events.One) {
		c.Cardinality = events.One
	}
	switch c.Sensitivity {
	case events.SensitivityNone, events.SensitivityPersonal, events.SensitivitySensitive:
	default:
		c.Sensitivity = events.SensitivityNone
	}
	if c.Category == "health" {
		c.Sensitivity = events.SensitivitySensitive
	}
	for _, m := range f.Entities {
		name, kind := strings.TrimSpace(m.Name), events.EntityType(m.Type)
		if name != "" && slices.Contains(entityTypes, kind) {
			c.Entities = append(c.Entities, events.Mention{Name: name, Type: kind})
		}
	}
	return c, true
}

var entityTypes = []events.EntityType{
	events.EntityPerson, events.EntityProject, events.EntityOrganization, events.EntityPlace,
	events.EntityConcept, events.EntityTool, events.EntityEvent, events.EntityProduct,
}

// subject is "user" however the model writes it.
func subject(s string) string {
	s = strings.TrimSpace(s)
	switch strings.ToLower(s) {
	case "user", "the user", "speaker", "the speaker", "i", "me":
		return "user"
	}
	return s
}

// predicate is a name in snake_case.
func predicate(s string) string {
	return strings.Join(strings.FieldsFunc(strings.ToLower(s), func(r rune) bool { return r == ' ' || r == '-' || r == '_' }), "_")
}

func sorted(names []string) []string {
	slices.Sort(names)
	return names
}
