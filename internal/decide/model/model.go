package model

import (
	"cmp"
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"time"

	"palimpsest/internal/decide"
	"palimpsest/internal/lex"
	"palimpsest/internal/llm"
	"palimpsest/internal/memory"
	"palimpsest/pkg/events"
)

const (
	// perCall is how many open candidates one call covers.
	perCall = 8
	// neighbours is how many similar facts are shown of a candidate, and keyed how
	// many of the same subject and predicate.
	neighbours, keyed = 5, 5
)

//go:embed prompts
var prompts embed.FS

var question = template.Must(template.ParseFS(prompts, "prompts/user.tmpl"))

func system() string {
	raw, err := prompts.ReadFile("prompts/system.txt")
	if err != nil {
		panic(err) // it is embedded
	}
	return strings.TrimSpace(string(raw))
}

// Config of the decider. A zero value stands for its default.
type Config struct {
	// Prompt replaces the instruction. It must ask for the same JSON.
	Prompt string
	// MaxTokens bounds a reply; default 2000.
	MaxTokens int
}

// Decider asks a model for advice. It is safe for concurrent use.
type Decider struct {
	model llm.Model
	steps decide.Decider
	cfg   Config
}

var _ decide.Decider = (*Decider)(nil)

// New returns a decider. steps decides, with the model's advice.
func New(m llm.Model, steps decide.Decider, cfg Config) *Decider {
	if strings.TrimSpace(cfg.Prompt) == "" {
		cfg.Prompt = system()
	}
	if cfg.MaxTokens == 0 {
		cfg.MaxTokens = 2000
	}
	return &Decider{model: m, steps: steps, cfg: cfg}
}

// Name implements [decide.Decider].
func (d *Decider) Name() string { return "llm:" + d.model.Info().Model }

// Decide implements [decide.Decider]. An error that [llm.Paused] knows passes.
func (d *Decider) Decide(ctx context.Context, candidates []events.Candidate, known decide.Known) (decide.Decision, error) {
	open, err := openOnes(ctx, candidates, known)
	if err != nil {
		return decide.Decision{}, err
	}
	known.Advice = maps.Clone(known.Advice)
	for part := range slices.Chunk(open, perCall) {
		advice, err := d.ask(ctx, part, known)
		if err != nil {
			return decide.Decision{}, err
		}
		if known.Advice == nil {
			known.Advice = map[string]decide.Advice{}
		}
		maps.Copy(known.Advice, advice)
	}
	return d.steps.Decide(ctx, candidates, known)
}

// open is a candidate that the steps alone may decide badly: facts that hold are
// known around it, and none says the same.
type open struct {
	c     events.Candidate
	known []events.Fact
}

func openOnes(ctx context.Context, candidates []events.Candidate, known decide.Known) ([]open, error) {
	var out []open
	for _, c := range candidates {
		if c.Intent != "" || c.Negated || c.Text == "" {
			continue
		}
		near, err := around(ctx, c, known.Lookup)
		if err != nil {
			return nil, err
		}
		settled := slices.ContainsFunc(near, func(f events.Fact) bool { return same(f, c) })
		if len(near) > 0 && !settled {
			out = append(out, open{c, near})
		}
	}
	return out, nil
}

// around reads the facts that a candidate may change: those that share its subject
// and predicate, and those with similar words.
func around(ctx context.Context, c events.Candidate, lookup decide.Lookup) ([]events.Fact, error) {
	var out []events.Fact
	take := func(facts []events.Fact, most int) {
		for _, f := range facts {
			holds := f.ArchivedAt == nil && f.SupersededBy == "" && (f.ValidUntil == nil || f.ValidUntil.After(c.EventTime))
			known := slices.ContainsFunc(out, func(g events.Fact) bool { return g.ID == f.ID })
			if holds && !known && most > 0 {
				out = append(out, f)
				most--
			}
		}
	}
	if c.Subject != "" && c.Predicate != "" && c.Cardinality == events.One {
		facts, err := lookup.ByPredicate(ctx, c.Subject, c.Predicate)
		if err != nil {
			return nil, err
		}
		slices.Reverse(facts) // the newest versions last
		take(facts, keyed)
	}
	facts, err := lookup.Similar(ctx, c.Text, neighbours)
	if err != nil {
		return nil, err
	}
	take(facts, neighbours)
	return out, nil
}

// same reports whether step 2 finds the fact.
func same(f events.Fact, c events.Candidate) bool {
	return f.Hash == memory.HashText(c.Text) ||
		f.Subject == c.Subject && f.Predicate == c.Predicate && lex.Object(f.Object) == lex.Object(c.Object)
}

// ask asks for advice on some candidates. A reply that is no use gives none.
func (d *Decider) ask(ctx context.Context, part []open, known decide.Known) (map[string]decide.Advice, error) {
	user, err := render(part)
	if err != nil {
		return nil, fmt.Errorf("render the prompt: %w", err)
	}
	reply, err := d.model.Complete(ctx, llm.Request{
		Scope: known.Scope, System: cmp.Or(known.Prompt, d.cfg.Prompt), User: user, Schema: schema, Name: "operations", MaxTokens: d.cfg.MaxTokens,
		Accept: func(r llm.Reply) error { _, err := read(r); return err },
	})
	if llm.Unusable(err) {
		return nil, nil //nolint:nilnil // no advice: the steps decide
	}
	if err != nil {
		return nil, fmt.Errorf("ask the model: %w", err)
	}
	ops, err := read(reply)
	if err != nil {
		return nil, nil //nolint:nilerr,nilnil // as above
	}
	return advise(part, ops, d.Name()), nil
}

// shown is a candidate as the prompt shows it.
type shown struct {
	Number                                 int
	Said, Text, Subject, Predicate, Object string
	Quote                                  string
	Known                                  []alias
}

type alias struct {
	Alias, Since, Text, Subject, Predicate, Object string
}

func render(part []open) (string, error) {
	var all []shown
	for i, o := range part {
		s := shown{
			Number: i + 1, Said: o.c.EventTime.Format("Mon 2006-01-02"), Text: flat(o.c.Text), Quote: flat(o.c.EvidenceQuote),
			Subject: flat(o.c.Subject), Predicate: flat(o.c.Predicate), Object: flat(o.c.Object),
		}
		for j, f := range o.known {
			s.Known = append(s.Known, alias{
				Alias: aliasOf(j), Since: f.ValidFrom.Format(time.DateOnly), Text: flat(f.Text),
				Subject: flat(f.Subject), Predicate: flat(f.Predicate), Object: flat(f.Object),
			})
		}
		all = append(all, s)
	}
	var b strings.Builder
	if err := question.Execute(&b, all); err != nil {
		return "", err
	}
	return strings.TrimSpace(b.String()), nil
}

func aliasOf(i int) string { return "k" + strconv.Itoa(i+1) }

// flat is a text on one line and without the marks around data.
func flat(text string) string {
	return strings.NewReplacer("<", "‹", ">", "›").Replace(strings.Join(strings.Fields(text), " "))
}

// operation is one as the model returns it.
type operation struct {
	Candidate int    `json:"candidate"`
	Operation string `json:"operation"`
	Target    string `json:"target"`
	Text      string `json:"text"`
	Reason    string `json:"reason"`
}

func read(reply llm.Reply) ([]operation, error) {
	return llm.Decode[operation](reply.Text, "operations")
}

// schema requires every member, as endpoints demand that hold replies to it.
var schema = json.RawMessage(`{"type":"object","additionalProperties":false,"required":["operations"],"properties":{"operations":{"type":"array","items":{
"type":"object","additionalProperties":false,"required":["candidate","operation","target","text","reason"],"properties":{
"candidate":{"type":"integer"},"operation":{"type":"string","enum":["ADD","UPDATE","DELETE","NONE"]},
"target":{"type":"string"},"text":{"type":"string"},"reason":{"type":"string"}}}}}}`)
