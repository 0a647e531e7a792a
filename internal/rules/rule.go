package rules

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	"palimpsest/internal/filter"
	"palimpsest/internal/lex"
	"palimpsest/internal/memory"
	"palimpsest/pkg/events"
)

// The extractors and deciders that rules may name.
const (
	RulePack = "rulepack" // extractor
	Causes   = "causes"   // extractor, with a model
	Steps    = "rules"    // decider
	Model    = "model"    // either
)

// stated is a rule as a file states it: the keys that it has, to be laid over
// another of the same id.
type stated struct {
	file string
	id   string
	node ast.Node
	keys []*ast.MappingValueNode

	rule memory.Rule
	// lines are those of the keys that were laid, files where they stand.
	lines map[string]*stated
	nodes map[string]ast.Node
}

func readRule(file string, n ast.Node, keys []*ast.MappingValueNode) (stated, error) {
	s := stated{file: file, node: n, keys: keys}
	for _, kv := range keys {
		if kv.Key.GetToken().Value == "id" {
			if err := yaml.NodeToValue(kv.Value, &s.id); err != nil {
				return s, located(file, "", "id", kv.Value, err)
			}
		}
	}
	switch {
	case s.id == "":
		return s, located(file, "", "id", n, errors.New("is required"))
	case !plainID(s.id):
		return s, located(file, "", "id", n, fmt.Errorf("%q: use up to 64 of a-z, 0-9, - and _", s.id))
	case slices.Contains(reserved, s.id):
		return s, located(file, s.id, "id", n, errors.New("is the name of a rule of Palimpsest that has no settings"))
	}
	// Read once by itself, so that every key that is wrong is named at once.
	alone := stated{id: s.id, rule: memory.Rule{ID: s.id}}
	return s, alone.lay(s)
}

// reserved are the ids that effects without a configured rule are filed under.
var reserved = []string{memory.RuleVerbatim, memory.RuleCommand}

// plainID reports whether an id can stand in a path, a subject and a metric's label.
func plainID(id string) bool {
	return len(id) <= 64 && strings.Trim(id, "abcdefghijklmnopqrstuvwxyz0123456789-_") == ""
}

// lay writes the keys of another rule of the same id over s.
func (s *stated) lay(over stated) error {
	if s.lines == nil {
		s.lines, s.nodes = map[string]*stated{}, map[string]ast.Node{}
	}
	s.file, s.node = over.file, over.node
	var errs []error
	for _, kv := range over.keys {
		key := kv.Key.GetToken().Value
		s.lines[key], s.nodes[key] = &over, kv.Value
		if err := s.set(key, kv.Value); err != nil {
			errs = append(errs, located(over.file, s.id, key, kv.Value, err))
		}
	}
	return errors.Join(errs...)
}

// keys are those of a rule.
var keys = []string{
	"id", "every", "cron", "tz", "session_end", "when", "then", "extractor", "decider", "prompt", "decision_prompt",
	"streaming", "commit_only", "request", "steps", "enabled",
}

// set reads one key into the rule.
func (s *stated) set(key string, n ast.Node) error {
	r := &s.rule
	into := func(v any) error { return yaml.NodeToValue(n, v) }
	switch key {
	case "id":
		return nil
	case "every":
		if _, fraction := n.(*ast.FloatNode); fraction { // the parser would cut it
			return errors.New("needs a whole number")
		}
		return into(&r.Cadence.Every)
	case "cron":
		return errors.Join(into(&r.Cadence.Cron), s.checkCron())
	case "tz":
		return s.setZone(into)
	case "session_end":
		return into(&r.Cadence.SessionEnd)
	case "when":
		return s.setWhen(into)
	case "then":
		return s.setThen(into)
	case "extractor":
		return errors.Join(into(&r.Extractor), oneOf(&r.Extractor, RulePack, Model, Causes))
	case "decider":
		return errors.Join(into(&r.Decider), oneOf(&r.Decider, Steps, Model))
	case "prompt":
		return into(&r.Prompt)
	case "decision_prompt":
		return into(&r.DecisionPrompt)
	case "streaming":
		return into(&r.Streaming)
	case "commit_only":
		return into(&r.CommitOnly)
	case "request":
		return into(&r.Cadence.Request)
	case "steps":
		return s.setSteps(into)
	case "enabled":
		return into(&r.Enabled)
	}
	return fmt.Errorf("unknown key; the nearest known one is %q", lex.Nearest(key, keys))
}

func oneOf(value *string, names ...string) error {
	if *value != "" && !slices.Contains(names, *value) {
		return fmt.Errorf("%q is none of %s", *value, strings.Join(names, ", "))
	}
	return nil
}

func (s *stated) checkCron() error {
	if s.rule.Cadence.Cron == "" {
		return nil
	}
	_, err := ParseCron(s.rule.Cadence.Cron, nil)
	return err
}

func (s *stated) setZone(into func(any) error) error {
	var name string
	if err := into(&name); err != nil {
		return err
	}
	loc, err := time.LoadLocation(name)
	if err != nil {
		return fmt.Errorf("%q is no time zone such as Europe/Berlin", name)
	}
	s.rule.Cadence.Location = loc
	return nil
}

// setWhen reads a condition on episodes.
func (s *stated) setWhen(into func(any) error) error {
	var text string
	if err := into(&text); err != nil {
		return err
	}
	s.rule.Where, s.rule.When = strings.TrimSpace(text), nil
	if s.rule.Where == "" {
		return nil
	}
	e, err := filter.ParseWhere(text, filter.Episodes)
	s.rule.When = e
	return err
}

func (s *stated) setSteps(into func(any) error) error {
	if err := into(&s.rule.Steps); err != nil {
		return err
	}
	for _, step := range s.rule.Steps {
		if step != events.StepPrune && step != events.StepEnrich {
			return fmt.Errorf("%q is neither %s nor %s", step, events.StepPrune, events.StepEnrich)
		}
	}
	return nil
}

func (s *stated) setThen(into func(any) error) error {
	var kinds []events.FactKind
	if err := into(&kinds); err != nil {
		return err
	}
	for _, k := range kinds {
		if !k.Valid() {
			return fmt.Errorf("%q is none of semantic, procedural, opinion, summary, relation", k)
		}
	}
	s.rule.Then = kinds
	return nil
}

// fail is an error about a key, at the place where it was stated.
func (s *stated) fail(key string, err error) error {
	file, n := s.file, s.node
	if by := s.lines[key]; by != nil {
		file, n = by.file, s.nodes[key]
	}
	return located(file, s.id, key, n, err)
}

// complete names the extractor and decider of a rule that names none, and checks
// rules on several keys.
func (s *stated) complete(model string) error {
	r := &s.rule
	c := r.Cadence
	if len(r.Steps) > 0 {
		return s.completeUpkeep(model)
	}
	if due := c.Every > 0 || c.Cron != "" || c.SessionEnd; c.Request && due {
		return s.fail("request", errors.New("has a cadence of its own: leave out every, cron and session_end"))
	} else if r.Enabled && !due && !c.Request {
		return s.fail("", errors.New("is never due: give it every, cron or session_end"))
	}
	asks := r.Extractor == Model || r.Extractor == Causes
	if model == "" && (asks || r.Decider == Model) {
		key := "extractor"
		if !asks {
			key = "decider"
		}
		return s.fail(key, errors.New("no language model is configured: set llm.provider"))
	}
	if r.Extractor == "" {
		r.Extractor = model
	}
	if r.Decider == "" && r.Extractor == Model {
		r.Decider = model
	}
	if r.Extractor == Model || r.Extractor == Causes || r.Decider == Model {
		r.Class = events.ClassModel
	}
	if r.Enabled && c.Every == 1 && (r.Extractor == Model || r.Extractor == Causes) && !r.Streaming {
		return s.fail("every", errors.New("1 with a language model reads message by message, which loses facts and costs a call each: "+
			"use a larger number or session_end, or set streaming: true"))
	}
	return nil
}

// readingKeys mean something only for rules that read episodes.
var readingKeys = []string{
	"every", "session_end", "when", "then", "extractor", "decider", "prompt", "decision_prompt", "streaming", "commit_only", "request",
}

// completeUpkeep checks a rule of maintenance. The model summarises entities, where one
// is configured.
func (s *stated) completeUpkeep(model string) error {
	for _, key := range readingKeys {
		if s.nodes[key] != nil {
			return s.fail(key, errors.New("has no meaning beside steps: maintenance reads no messages"))
		}
	}
	if s.rule.Enabled && s.rule.Cadence.Cron == "" {
		return s.fail("steps", errors.New("needs cron"))
	}
	if model != "" && slices.Contains(s.rule.Steps, events.StepEnrich) {
		s.rule.Extractor, s.rule.Class = model, events.ClassModel
	}
	return nil
}
