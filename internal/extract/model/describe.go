package model

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"text/template"

	"palimpsest/internal/extract"
	"palimpsest/internal/llm"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// maxSummary bounds a summary, in bytes.
const maxSummary = 1200

var portraits = template.Must(template.ParseFS(prompts, "prompts/describe.tmpl"))

var _ extract.Describer = (*Extractor)(nil)

// Describe implements [extract.Describer] with one call. A summary that is too long, or
// has a number that no fact has, is left out.
func (x *Extractor) Describe(ctx context.Context, fact scope.Scope, of []extract.Portrait) ([]extract.Description, error) {
	user, err := introduce(of)
	if err != nil {
		return nil, fmt.Errorf("render the prompt: %w", err)
	}
	reply, err := x.model.Complete(ctx, llm.Request{
		Scope: fact, System: strings.TrimSpace(prompt("describe.txt")), User: user, Identity: version + " describe\n" + user,
		Schema: portraitSchema, Name: "entities", MaxTokens: x.cfg.MaxTokens,
		Accept: func(r llm.Reply) error { _, err := llm.Items(r.Text, "entities"); return err },
	})
	if llm.Unusable(err) {
		return nil, &extract.UnusableError{Reply: reply.Text, Err: err}
	}
	if err != nil {
		return nil, fmt.Errorf("ask the model: %w", err)
	}
	all, err := llm.Decode[portrayed](reply.Text, "entities")
	if err != nil {
		return nil, &extract.UnusableError{Reply: reply.Text, Err: err}
	}
	out := make([]extract.Description, len(of))
	for _, p := range all {
		if p.Number >= 1 && p.Number <= len(of) {
			out[p.Number-1] = p.of(of[p.Number-1])
		}
	}
	return out, nil
}

// portrayed is a summary as the model returns it.
type portrayed struct {
	Number  int    `json:"number"`
	Summary string `json:"summary"`
	Type    string `json:"type"`
}

// of checks a summary against what it rests on.
func (p portrayed) of(e extract.Portrait) extract.Description {
	d := extract.Description{Summary: strings.TrimSpace(p.Summary)}
	if kind := events.EntityType(p.Type); slices.Contains(entityTypes, kind) {
		d.Type = kind
	}
	if len(d.Summary) > maxSummary || !e.Numbered(d.Summary) {
		d.Summary = ""
	}
	return d
}

// introduce renders the variable part of a request.
func introduce(of []extract.Portrait) (string, error) {
	type entity struct {
		Number     int
		Name, Type string
		Facts      []string
	}
	var list []entity
	for i, p := range of {
		e := entity{Number: i + 1, Name: oneLine(p.Entity.CanonicalName), Type: string(p.Entity.Type)}
		for _, f := range p.Facts {
			e.Facts = append(e.Facts, oneLine(f.Text))
		}
		list = append(list, e)
	}
	var b strings.Builder
	err := portraits.Execute(&b, list)
	return strings.TrimSpace(b.String()), err
}

var portraitSchema = listSchema("entities", map[string]any{
	"number": map[string]any{"type": "integer"}, "summary": map[string]any{"type": "string"}, "type": map[string]any{"type": "string"},
})
