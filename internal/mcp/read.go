package mcp

import (
	"context"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"palimpsest/pkg/api"
)

func (s *server) addReads(to *sdk.Server) {
	reads := func(title string) *sdk.ToolAnnotations {
		return &sdk.ToolAnnotations{Title: title, ReadOnlyHint: true, IdempotentHint: true, DestructiveHint: new(bool), OpenWorldHint: new(bool)}
	}
	sdk.AddTool(to, &sdk.Tool{
		Name: "search_memory", Annotations: reads("Search memory"),
		Description: "Find facts and messages of earlier conversations by meaning and words, best first.",
	}, s.search)
	sdk.AddTool(to, &sdk.Tool{
		Name: "get_context", Annotations: reads("Get context"),
		Description: "Get what is known about a message as one block of text: instructions, facts, people and things, recent events and quotes.",
	}, s.context)
	sdk.AddTool(to, &sdk.Tool{
		Name: "explain_fact", Annotations: reads("Explain a fact"),
		Description: "Show why a fact is known: the messages it comes from, the decision that made it, and its earlier versions.",
	}, s.explain)
	sdk.AddTool(to, &sdk.Tool{
		Name: "get_entity_info", Annotations: reads("Get entity info"),
		Description: "Get what is known of a person, place or thing by its name: a description, facts and relations.",
	}, s.entity)
	sdk.AddTool(to, &sdk.Tool{
		Name: "weak_facts", Annotations: reads("Weak facts"),
		Description: "List facts that are about to be forgotten because nobody read them: confirm_fact keeps those that still hold.",
	}, s.weak)
	sdk.AddTool(to, &sdk.Tool{
		Name: "memory_stats", Annotations: reads("Memory statistics"),
		Description: "Count facts, entities and relations, and per consolidation rule what became of recorded messages: accepted, consolidated, pending, and the facts that they led to.",
	}, s.stats)
}

// SearchArgs are the arguments of search_memory.
type SearchArgs struct {
	Query   string   `json:"query" jsonschema:"What to look for, as a question or as words."`
	Types   []string `json:"types,omitempty" jsonschema:"fact, episode; both unless given. An episode is one message."`
	Kinds   []string `json:"kinds,omitempty" jsonschema:"Kinds of facts: semantic, procedural, opinion, summary, relation; all unless given."`
	Entity  string   `json:"entity,omitempty" jsonschema:"Only facts that mention the person, place or thing of this name, and the messages that they come from."`
	After   string   `json:"after,omitempty" jsonschema:"Only what happened after this time: RFC 3339, YYYY-MM-DD, yesterday, last_week or last_month."`
	Before  string   `json:"before,omitempty" jsonschema:"Only what happened before this time, as after."`
	ValidAt string   `json:"valid_at,omitempty" jsonschema:"What was true at this time, RFC 3339 or YYYY-MM-DD; now unless given."`
	Limit   int      `json:"limit,omitempty" jsonschema:"Results at most, 1 to 1000; 5 or 20 by the query unless given."`
	Whose
}

// SearchResult is the answer of search_memory.
type SearchResult struct {
	Results []Hit `json:"results" jsonschema:"Best first."`
	// Degraded names the ways of searching that failed or took too long.
	Degraded []string `json:"degraded,omitempty" jsonschema:"Ways of searching that failed: results may be missing."`
}

// Hit is a fact or an episode.
type Hit struct {
	Score   float64 `json:"score" jsonschema:"0 to 1, falls with rank."`
	Fact    Fact    `json:"fact,omitzero"`
	Episode Episode `json:"episode,omitzero"`
}

func (s *server) search(ctx context.Context, _ *sdk.CallToolRequest, in SearchArgs) (*sdk.CallToolResult, SearchResult, error) {
	found, err := s.find(ctx, in)
	if err != nil {
		return nil, SearchResult{}, err
	}
	return nil, SearchResult{Results: each(found.Results, viewHit), Degraded: found.Degraded}, nil
}

func (s *server) find(ctx context.Context, in SearchArgs) (api.Found, error) {
	q := api.Search{
		Text: in.Query, Types: in.Types, Kinds: in.Kinds, Entity: in.Entity, Limit: in.Limit, After: api.Bound(in.After), Before: api.Bound(in.Before),
	}
	var err error
	if q.Selector, err = s.reads(in.Whose); err != nil {
		return api.Found{}, err
	}
	if q.ValidAt, err = instant("valid_at", in.ValidAt); err != nil {
		return api.Found{}, err
	}
	found, err := s.memory.Search(ctx, q)
	return found, told(err)
}

func viewHit(h api.Hit) Hit {
	out := Hit{Score: h.Score}
	if h.Fact != nil {
		out.Fact = viewFact(*h.Fact)
	}
	if h.Episode != nil {
		out.Episode = viewEpisode(*h.Episode)
	}
	return out
}

// ContextArgs are the arguments of get_context.
type ContextArgs struct {
	Query  string `json:"query" jsonschema:"The message or question to get context for."`
	Budget int    `json:"budget,omitempty" jsonschema:"Tokens at most; 1000 or 3000 by the query unless given."`
	Whose
}

// ContextResult is the answer of get_context.
type ContextResult struct {
	Context  string   `json:"context" jsonschema:"Markdown; each line ends in the id of its fact or message. Empty where nothing is known."`
	Degraded []string `json:"degraded,omitempty" jsonschema:"Ways of searching that failed: the context may lack something."`
}

func (s *server) context(ctx context.Context, _ *sdk.CallToolRequest, in ContextArgs) (*sdk.CallToolResult, ContextResult, error) {
	sel, err := s.reads(in.Whose)
	if err != nil {
		return nil, ContextResult{}, err
	}
	block, err := s.memory.Assemble(ctx, api.ContextQuery{Selector: sel, Text: in.Query, Budget: in.Budget})
	if err != nil {
		return nil, ContextResult{}, told(err)
	}
	return nil, ContextResult{Context: block.Context, Degraded: block.Degraded}, nil
}

// FactArgs name one fact.
type FactArgs struct {
	ID string `json:"id" jsonschema:"Id of the fact, from search_memory."`
}

// Explanation is the answer of explain_fact.
type Explanation struct {
	Fact      Fact       `json:"fact"`
	Quote     string     `json:"quote,omitempty" jsonschema:"The words that the fact rests on."`
	Episodes  []Episode  `json:"episodes" jsonschema:"The messages that the fact comes from."`
	Decisions []Decision `json:"decisions" jsonschema:"The decisions about the fact, oldest first."`
	Versions  []Fact     `json:"versions" jsonschema:"Earlier versions, oldest first."`
	Entities  []string   `json:"entities" jsonschema:"Names of the people, places and things that the fact mentions."`
}

// Decision is why a fact is as it is.
type Decision struct {
	Event     string    `json:"event" jsonschema:"ADD, UPDATE, DELETE or NONE."`
	Reason    string    `json:"reason"`
	Rule      string    `json:"rule" jsonschema:"The consolidation rule."`
	DecidedBy string    `json:"decided_by"`
	At        time.Time `json:"at"`
}

func (s *server) explain(ctx context.Context, _ *sdk.CallToolRequest, in FactArgs) (*sdk.CallToolResult, Explanation, error) {
	if err := in.check(); err != nil {
		return nil, Explanation{}, err
	}
	e, err := s.memory.Explain(ctx, in.ID)
	if err != nil {
		return nil, Explanation{}, told(err)
	}
	out := Explanation{
		Fact: viewFact(e.Fact), Quote: e.Quote, Episodes: each(e.Episodes, viewEpisode), Versions: each(e.Versions, viewFact),
		Entities: each(e.Entities, func(e api.Entity) string { return e.Name }),
		Decisions: each(e.Decisions, func(d api.Change) Decision {
			return Decision{Event: d.Event, Reason: d.Reason, Rule: d.Rule, DecidedBy: d.DecidedBy, At: d.AppliedAt}
		}),
	}
	return nil, out, nil
}

// WeakArgs are the arguments of weak_facts.
type WeakArgs struct {
	Limit int `json:"limit,omitempty" jsonschema:"Facts at most, 1 to 1000; 100 unless given."`
	Whose
}

// WeakResult is the answer of weak_facts.
type WeakResult struct {
	Facts []WeakFact `json:"facts"`
	More  bool       `json:"more,omitempty" jsonschema:"True if there may be further weak facts."`
}

// WeakFact is a fact that is about to be forgotten.
type WeakFact struct {
	Fact
	PrunedAt time.Time `json:"pruned_at,omitzero" jsonschema:"When it is forgotten unless it is read or confirmed."`
}

func (s *server) weak(ctx context.Context, _ *sdk.CallToolRequest, in WeakArgs) (*sdk.CallToolResult, WeakResult, error) {
	sel, err := s.reads(in.Whose)
	if err != nil {
		return nil, WeakResult{}, err
	}
	page, err := s.memory.WeakFacts(ctx, sel.In(""), in.Limit, "")
	if err != nil {
		return nil, WeakResult{}, told(err)
	}
	return nil, WeakResult{More: page.Next != "", Facts: each(page.Facts, func(f api.WeakFact) WeakFact {
		out := WeakFact{Fact: viewFact(f.Fact)}
		if f.PrunedAt != nil {
			out.PrunedAt = *f.PrunedAt
		}
		return out
	})}, nil
}

// StatsArgs are the arguments of memory_stats.
type StatsArgs struct {
	User  string `json:"user,omitempty" jsonschema:"Identifier of the user. Left out: the user that the server was configured with."`
	Agent string `json:"agent,omitempty" jsonschema:"Identifier of the agent; any unless given."`
}

// Stats is the answer of memory_stats.
type Stats struct {
	Counts   api.Stats     `json:"counts" jsonschema:"What is known now: facts, entities and relations."`
	Rules    []api.Account `json:"rules" jsonschema:"One account per consolidation rule; each rule reads all messages."`
	Balanced bool          `json:"balanced" jsonschema:"True if no message is unaccounted for."`
}

func (s *server) stats(ctx context.Context, _ *sdk.CallToolRequest, in StatsArgs) (*sdk.CallToolResult, Stats, error) {
	sel, err := s.reads(Whose{User: in.User, Agent: in.Agent})
	if err != nil {
		return nil, Stats{}, err
	}
	counts, err := s.memory.Stats(ctx, sel.In(""))
	if err != nil {
		return nil, Stats{}, told(err)
	}
	l, err := s.memory.Ledger(ctx, sel.In(""), false)
	if err != nil {
		return nil, Stats{}, told(err)
	}
	return nil, Stats{Counts: counts, Rules: each(l.Totals, func(a api.Account) api.Account { return a }), Balanced: l.Balanced}, nil
}
