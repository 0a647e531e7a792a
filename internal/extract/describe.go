package extract

import (
	"context"
	"slices"
	"strings"

	"palimpsest/internal/lex"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// Portrait is an entity and the facts that a summary of it rests on.
type Portrait struct {
	Entity events.Entity
	Facts  []events.Fact
}

// Numbered reports whether a summary has no number but those of the entity's name and
// facts.
func (p Portrait) Numbered(summary string) bool {
	known := lex.MarksOf(p.Entity.CanonicalName).Numbers
	for _, f := range p.Facts {
		known = append(known, lex.MarksOf(f.Text).Numbers...)
	}
	return !slices.ContainsFunc(lex.MarksOf(summary).Numbers, func(n string) bool { return !slices.Contains(known, n) })
}

// Description is a summary of an entity.
type Description struct {
	// Summary is a few sentences; empty where there is none.
	Summary string
	// Type is what kind of thing the entity is; empty where that is not known.
	Type events.EntityType
}

// Describer summarises entities. An [Extractor] may be one.
type Describer interface {
	// Describe returns a description of each portrait, in their order. The same
	// portraits give the same descriptions. It returns an [UnusableError] where it
	// never will.
	Describe(ctx context.Context, fact scope.Scope, of []Portrait) ([]Description, error)
}

// Outline describes an entity without a model: its type, its aliases and its facts.
func Outline(p Portrait) Description {
	kind := string(p.Entity.Type)
	if kind == "" {
		kind = "thing"
	}
	article := "a"
	if strings.ContainsRune("aeiou", rune(kind[0])) {
		article = "an"
	}
	text := p.Entity.CanonicalName + " is " + article + " " + kind
	if len(p.Entity.Aliases) > 0 {
		text += ", also called " + strings.Join(p.Entity.Aliases, ", ")
	}
	text += "."
	for _, f := range p.Facts[:min(len(p.Facts), summaryLines)] {
		text += " " + f.Text
	}
	return Description{Summary: text}
}
