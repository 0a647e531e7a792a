package rulepack

import (
	"bytes"
	"cmp"
	"embed"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"palimpsest/internal/extract/rulepack/grammar"
	"palimpsest/pkg/events"
)

//go:embed packs/*.yaml
var shipped embed.FS

// Pack is what one file says about one language. Packs of a language are laid
// over each other in order: rules and answers by id, word lists by name.
type Pack struct {
	// ID names the pack in errors; Version becomes part of Candidate.Extractor.
	ID      string `yaml:"id"`
	Version string `yaml:"version"`
	// Language is a BCP 47 tag; Script, "Latin" or "Cyrillic" (any name of
	// Unicode's), says which texts the pack is tried on.
	Language string `yaml:"language"`
	Script   string `yaml:"script"`
	// Lexicon holds the word lists that segmentation works with.
	Lexicon grammar.Lexicon `yaml:"lexicon"`
	// Sets are named lists of phrases that patterns refer to as @name.
	Sets map[string][]string `yaml:"sets"`
	// Relations are the people and animals of "my …".
	Relations []Relation `yaml:"relations"`
	Rules     []Rule     `yaml:"rules"`
	// Answers say how a bare answer reads with the question before it.
	Answers []Answer `yaml:"answers"`
	// Changes are the forms in which one value takes the place of another.
	Changes []Change `yaml:"changes"`
	// Endings and Beginnings are the forms in which a value ends and in which one
	// begins, whatever the attribute.
	Endings    []Change `yaml:"endings"`
	Beginnings []Change `yaml:"beginnings"`
	// Kinds say what the values of predicates are not.
	Kinds []Kind `yaml:"kinds"`
}

// Rule is what a clause of one of its patterns means.
type Rule struct {
	ID          string             `yaml:"id"`
	Kind        events.FactKind    `yaml:"kind"` // default semantic
	Category    string             `yaml:"category"`
	Predicate   string             `yaml:"predicate"`   // may hold a capture: favorite_{topic}
	Cardinality events.Cardinality `yaml:"cardinality"` // default many
	// Tense is present (default), past or future: the direction in which "in
	// March" is resolved, and whether a date is a beginning or the event.
	Tense       string             `yaml:"tense"`
	Sensitivity events.Sensitivity `yaml:"sensitivity"` // default none
	Implicit    bool               `yaml:"implicit"`
	Hedged      bool               `yaml:"hedged"`
	Transient   bool               `yaml:"transient"`
	// Lasting leaves out what is so for a time: "i am in Rome this week" is no home.
	Lasting bool `yaml:"lasting"`
	// Polarity negative means that a match says that the triple ends or does
	// not hold. A negation inside an otherwise positive clause does the same,
	// unless Denied says what it means instead.
	Polarity   string   `yaml:"polarity"`
	Confidence float64  `yaml:"confidence"` // default 0.9
	Patterns   []string `yaml:"patterns"`
	Object     string   `yaml:"object"` // template; default {o}
	Text       string   `yaml:"text"`   // template of the third-person sentence
	Denied     *Denial  `yaml:"denied"`
	// Lone is what a rule of negative polarity says where nothing in the episode
	// takes the place of what ended; the triple is retracted.
	Lone *Denial `yaml:"lone"`
	// Ended is the template of "no longer"; default the text behind the
	// lexicon's no_longer.
	Ended string `yaml:"ended"`
	// Ends is the predicate that "any more" ends, where it is not the rule's own:
	// "i don't like it any more" ends "likes".
	Ends     string     `yaml:"ends"`
	Retracts []Retract  `yaml:"retracts"`
	Entities []EntityOf `yaml:"entities"`
	// List splits a capture o at commas and conjunctions into one fact each.
	List bool `yaml:"list"`
	// Joined lets a capture run on over them.
	Joined bool `yaml:"joined"`
	// Self restricts the rule to the speaker; others match other persons too.
	Self bool `yaml:"self"`
	// Kin rules are tried before "my sister" is read as the subject of a clause.
	Kin bool `yaml:"kin"`
	// Undated rules have dates for objects, which say nothing of validity.
	Undated bool `yaml:"undated"`
	// Unsafe marks instructions to bypass a safety check.
	Unsafe bool `yaml:"unsafe"`
	// Anchored rules match only what has a date, a name or a number.
	Anchored bool `yaml:"anchored"`
	// Absent rules have the negation in their patterns: "any more" ends nothing.
	Absent bool `yaml:"absent"`
	// Dated rules match only what has a date.
	Dated bool `yaml:"dated"`
	// Silent rules match and say nothing: they keep a phrase from later rules.
	Silent bool `yaml:"silent"`
	// Anywhere rules are tried at every word of a statement of the speaker's, beside the
	// rule that reads it whole: "my red hair" in "the wind ruins my red hair".
	Anywhere bool `yaml:"anywhere"`
	// Unreal lets the rule match in conditional clauses (instructions).
	Unreal bool `yaml:"unreal"`
	// Also names rules that read the same clause again: "i moved to Pune from Nagpur" says
	// where the speaker lives and where they lived. They match in no other way.
	Also []string `yaml:"also"`
}

// Denial is what a negated clause means: another rule's fact, nothing at all
// (Drop), or the same triple negated with another Text. With an Object it is a
// fact ("no pets") that retracts the triple.
type Denial struct {
	Predicate string `yaml:"predicate"`
	Object    string `yaml:"object"`
	Category  string `yaml:"category"`
	Text      string `yaml:"text"`
	Drop      bool   `yaml:"drop"`
}

// Retract names what a match ends, as templates.
type Retract struct {
	Predicate string `yaml:"predicate"`
	Object    string `yaml:"object"`
}

// EntityOf says what kind of thing a capture names.
type EntityOf struct {
	Capture string            `yaml:"capture"`
	Type    events.EntityType `yaml:"type"`
}

// Relation is a person or animal that "my …" names.
type Relation struct {
	Words       []string           `yaml:"words"`
	Predicate   string             `yaml:"predicate"`
	Category    string             `yaml:"category"` // default relationship
	Cardinality events.Cardinality `yaml:"cardinality"`
	Pronoun     string             `yaml:"pronoun"` // he, she; empty for either
	// Text and Named are the templates of "has one" and "has one of that name";
	// {rel} and {name} are filled in.
	Text  string            `yaml:"text"`
	Named string            `yaml:"named"`
	Type  events.EntityType `yaml:"type"` // default person
	// Quiet relations are no fact of their own unless they are named.
	Quiet bool `yaml:"quiet"`
}

// Answer completes a bare answer: after a question that matches Ask, the words
// Lead are put before it. Yes lists words that say yes to it, replaced by
// nothing; a Lead that ends in a capture needs one.
type Answer struct {
	ID   string   `yaml:"id"`
	Ask  []string `yaml:"ask"`
	Lead string   `yaml:"lead"`
	// Else is tried where nothing matches behind Lead.
	Else string `yaml:"else"`
	Yes  bool   `yaml:"yes"`
}

// PackError says what is wrong with a pack, and where.
type PackError struct {
	Pack, Pattern, Field, Reason string
}

func (e *PackError) Error() string {
	where := "rulepack: pack " + e.Pack
	if e.Pattern != "" {
		where += ": " + e.Pattern
	}
	return where + ": " + e.Field + ": " + e.Reason
}

// Parse reads one pack. Unknown fields are refused.
func Parse(name string, src []byte) (Pack, error) {
	var p Pack
	dec := yaml.NewDecoder(bytes.NewReader(src), yaml.Strict())
	if err := dec.Decode(&p); err != nil {
		return Pack{}, &PackError{Pack: name, Field: "yaml", Reason: err.Error()}
	}
	if p.ID == "" {
		p.ID = name
	}
	return p, p.validate()
}

func (p *Pack) validate() error {
	for _, f := range [...]struct{ field, value string }{{"version", p.Version}, {"language", p.Language}, {"script", p.Script}} {
		if f.value == "" {
			return &PackError{Pack: p.ID, Field: f.field, Reason: "is required"}
		}
	}
	seen := make(map[string]bool, len(p.Rules))
	for i := range p.Rules {
		r := &p.Rules[i]
		if err := r.complete(p.ID); err != nil {
			return err
		}
		if seen[r.ID] {
			return &PackError{Pack: p.ID, Pattern: r.ID, Field: "id", Reason: "is used twice"}
		}
		seen[r.ID] = true
	}
	for i := range p.Relations {
		r := &p.Relations[i]
		r.Category = cmp.Or(r.Category, "relationship")
		r.Cardinality = cmp.Or(r.Cardinality, events.Many)
		r.Type = cmp.Or(r.Type, events.EntityPerson)
		if len(r.Words) == 0 || r.Predicate == "" || r.Text == "" || r.Named == "" {
			return &PackError{Pack: p.ID, Pattern: "relations." + r.Predicate, Field: "words", Reason: "words, predicate, text and named are required"}
		}
	}
	for _, a := range p.Answers {
		if a.ID == "" || len(a.Ask) == 0 || a.Lead == "" {
			return &PackError{Pack: p.ID, Pattern: "answers." + a.ID, Field: "ask", Reason: "id, ask and lead are required"}
		}
	}
	return nil
}

// complete fills in defaults and refuses values that mean nothing.
func (r *Rule) complete(pack string) error {
	r.Kind = cmp.Or(r.Kind, events.FactSemantic)
	r.Cardinality = cmp.Or(r.Cardinality, events.Many)
	r.Sensitivity = cmp.Or(r.Sensitivity, events.SensitivityNone)
	r.Tense = cmp.Or(r.Tense, "present")
	r.Polarity = cmp.Or(r.Polarity, "positive")
	r.Confidence = cmp.Or(r.Confidence, 0.9)
	r.Object = cmp.Or(r.Object, "{o}")
	bad := func(field, format string, args ...any) error {
		return &PackError{Pack: pack, Pattern: r.ID, Field: field, Reason: fmt.Sprintf(format, args...)}
	}
	if r.Silent {
		r.Category, r.Predicate, r.Text, r.Object = "none", "none", "none", "none"
	}
	switch {
	case r.ID == "":
		return bad("id", "is required")
	case !r.Kind.Valid():
		return bad("kind", "%q is no kind of fact", r.Kind)
	case r.Category == "":
		return bad("category", "is required")
	case r.Predicate == "":
		return bad("predicate", "is required")
	case r.Text == "":
		return bad("text", "is required")
	case len(r.Patterns) == 0:
		return bad("patterns", "at least one is required")
	case r.Cardinality != events.One && r.Cardinality != events.Many:
		return bad("cardinality", "%q is neither one nor many", r.Cardinality)
	case !slices.Contains([]string{"present", "past", "future"}, r.Tense):
		return bad("tense", "%q is none of present, past, future", r.Tense)
	case !slices.Contains([]string{"positive", "negative"}, r.Polarity):
		return bad("polarity", "%q is neither positive nor negative", r.Polarity)
	case !slices.Contains([]events.Sensitivity{events.SensitivityNone, events.SensitivityPersonal, events.SensitivitySensitive}, r.Sensitivity):
		return bad("sensitivity", "%q is none of none, personal, sensitive", r.Sensitivity)
	case r.Confidence < 0 || r.Confidence > 1:
		return bad("confidence", "%g is outside 0 to 1", r.Confidence)
	}
	return nil
}

// Shipped returns the packs that come with the program, English first: a text
// without the marks of any language is read as English.
func Shipped() ([]Pack, error) {
	packs, err := ReadDir(shipped, "packs")
	slices.SortStableFunc(packs, func(a, b Pack) int {
		return cmp.Compare(btoi(a.Language != "en"), btoi(b.Language != "en"))
	})
	return packs, err
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// ReadDir reads all *.yaml of a folder, in the order of their names.
func ReadDir(files fs.FS, dir string) ([]Pack, error) {
	names, err := fs.Glob(files, strings.TrimSuffix(dir, "/")+"/*.yaml")
	if err != nil {
		return nil, fmt.Errorf("rulepack: list packs: %w", err)
	}
	packs := make([]Pack, 0, len(names))
	for _, name := range names {
		src, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, fmt.Errorf("rulepack: read pack: %w", err)
		}
		p, err := Parse(name, src)
		if err != nil {
			return nil, err
		}
		packs = append(packs, p)
	}
	return packs, nil
}

// overlay lays over on top of base: entries of over replace those of base with the
// same id or name.
func overlay(base, over Pack) Pack {
	out := base
	out.ID, out.Version = base.ID+"+"+over.ID, base.Version+"+"+over.Version
	out.Lexicon = base.Lexicon.Overlay(over.Lexicon)
	out.Sets = maps.Clone(base.Sets)
	if out.Sets == nil {
		out.Sets = map[string][]string{}
	}
	maps.Copy(out.Sets, over.Sets)
	out.Rules = overlayBy(base.Rules, over.Rules, func(r Rule) string { return r.ID })
	out.Answers = overlayBy(base.Answers, over.Answers, func(a Answer) string { return a.ID })
	byID := func(c Change) string { return c.ID }
	out.Changes = overlayBy(base.Changes, over.Changes, byID)
	out.Endings = overlayBy(base.Endings, over.Endings, byID)
	out.Beginnings = overlayBy(base.Beginnings, over.Beginnings, byID)
	out.Kinds = slices.Concat(base.Kinds, over.Kinds)
	out.Relations = overlayBy(base.Relations, over.Relations, func(r Relation) string { return r.Predicate + "/" + r.Words[0] })
	return out
}

// overlayBy puts new entries first, so that they are tried first.
func overlayBy[T any](base, over []T, id func(T) string) []T {
	replaced := make(map[string]bool, len(over))
	for _, o := range over {
		replaced[id(o)] = true
	}
	out := slices.Clone(over)
	for _, b := range base {
		if !replaced[id(b)] {
			out = append(out, b)
		}
	}
	return out
}
