package rules

import (
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"palimpsest/internal/memory"
)

//go:embed shipped.yaml
var shipped []byte

const shippedFile = "rules/shipped.yaml"

// Shipped returns the rules of an installation that configures none.
func Shipped() []memory.Rule {
	list, err := Config{}.Rules("")
	if err != nil {
		panic(err) // a test reads the file
	}
	return list
}

// ConsolidationRuleError says what is wrong with a rule, and where.
type ConsolidationRuleError struct {
	File string
	Line int    // 0 where the rule does not come from a file
	Rule string // its id; empty where it has none
	Key  string // empty where the rule as a whole is wrong
	Err  error
}

func (e *ConsolidationRuleError) Error() string {
	at := e.File
	if e.Line > 0 {
		at = fmt.Sprintf("%s:%d", at, e.Line)
	}
	what := "rules"
	if e.Rule != "" {
		what = "rule " + e.Rule
	}
	if e.Key != "" {
		what += ": " + e.Key
	}
	return at + ": " + what + ": " + e.Err.Error()
}

// Unwrap returns the reason.
func (e *ConsolidationRuleError) Unwrap() error { return e.Err }

// Config is the setting "rules": a list of rules, of names of files that hold such
// lists, or of both. Files are looked for beside the file that names them. The zero
// Config is the shipped rules.
type Config struct {
	stated []stated
}

// ReadYAML takes what stands below the key in a file.
func (c *Config) ReadYAML(file string, n ast.Node) error {
	list, err := read(file, n, 0)
	if err != nil {
		return err
	}
	c.stated = list
	return nil
}

// ReadText takes names of files with commas between them.
func (c *Config) ReadText(text string) error {
	c.stated = nil
	for name := range strings.SplitSeq(text, ",") {
		if name = strings.TrimSpace(name); name == "" {
			continue
		}
		list, err := readFile(name, 0)
		if err != nil {
			return err
		}
		c.stated = append(c.stated, list...)
	}
	return nil
}

// String lists the ids of the rules.
func (c *Config) String() string {
	list, err := c.overlaid()
	if err != nil {
		return err.Error()
	}
	var ids []string
	for _, s := range list {
		id := s.rule.ID
		if !s.rule.Enabled {
			id += " (off)"
		}
		ids = append(ids, id)
	}
	return strings.Join(ids, ", ")
}

// Rules returns the shipped rules with the configured ones laid over them, those
// that are not enabled too. model names the extractor and decider of rules that name
// none; it is empty where no language model is configured, and then they are those
// that need none. The error names every rule that cannot be used.
func (c Config) Rules(model string) ([]memory.Rule, error) {
	list, err := c.overlaid()
	if err != nil {
		return nil, err
	}
	var out []memory.Rule
	var errs []error
	requests := 0
	for _, s := range list {
		if s.rule.Enabled && s.rule.Cadence.Request {
			if requests++; requests > 1 {
				errs = append(errs, s.fail("request", errors.New("is that of another rule too: disable one")))
			}
		}
		if err := s.complete(model); err != nil {
			errs = append(errs, err)
		}
		out = append(out, s.rule)
	}
	return out, errors.Join(errs...)
}

func (c Config) overlaid() ([]*stated, error) {
	base, err := readText(shippedFile, shipped, 0)
	if err != nil {
		return nil, err
	}
	var list []*stated
	seen := map[string]bool{}
	for i, s := range slices.Concat(base, c.stated) {
		if i >= len(base) && seen[s.id] {
			return nil, s.fail("id", errors.New("is that of an earlier rule of the configuration"))
		}
		if i >= len(base) {
			seen[s.id] = true
		}
		at := slices.IndexFunc(list, func(known *stated) bool { return known.id == s.id })
		if at < 0 {
			fresh := s
			fresh.rule = memory.Rule{ID: s.id, Enabled: true}
			list, at = append(list, &fresh), len(list)
		}
		if err := list[at].lay(s); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// maxNesting bounds how deep files may name files.
const maxNesting = 8

func readFile(name string, nested int) ([]stated, error) {
	text, err := os.ReadFile(name) //nolint:gosec // the operator names it
	if err != nil {
		return nil, fmt.Errorf("rules: %w", err)
	}
	return readText(name, text, nested)
}

func readText(name string, text []byte, nested int) ([]stated, error) {
	file, err := parser.ParseBytes(text, 0)
	if err != nil {
		return nil, located(name, "", "", nil, err)
	}
	var out []stated
	for _, doc := range file.Docs {
		if doc.Body == nil {
			continue
		}
		list, err := read(name, doc.Body, nested)
		if err != nil {
			return nil, err
		}
		out = append(out, list...)
	}
	return out, nil
}

// read reads a list of rules and of names of files, or one name.
func read(file string, n ast.Node, nested int) ([]stated, error) {
	if nested > maxNesting {
		return nil, located(file, "", "", n, fmt.Errorf("files name files more than %d deep", maxNesting))
	}
	items := []ast.Node{n}
	if list, ok := n.(*ast.SequenceNode); ok {
		items = list.Values
	}
	var out []stated
	var errs []error
	for _, item := range items {
		switch item := item.(type) {
		case *ast.NullNode, *ast.CommentGroupNode:
		case *ast.StringNode:
			name := item.Value
			if !filepath.IsAbs(name) {
				name = filepath.Join(filepath.Dir(file), name)
			}
			list, err := readFile(name, nested+1)
			if err != nil {
				errs = append(errs, err)
			}
			out = append(out, list...)
		case *ast.MappingNode:
			s, err := readRule(file, item, item.Values)
			out, errs = append(out, s), append(errs, err)
		case *ast.MappingValueNode:
			s, err := readRule(file, item, []*ast.MappingValueNode{item})
			out, errs = append(out, s), append(errs, err)
		default:
			errs = append(errs, located(file, "", "", item, errors.New("needs rules, or names of files with rules")))
		}
	}
	return out, errors.Join(errs...)
}

// located gives an error its place: that of the token that it names, or of a node.
func located(file, rule, key string, n ast.Node, err error) error {
	e := &ConsolidationRuleError{File: file, Rule: rule, Key: key, Err: err}
	if n != nil {
		e.Line = n.GetToken().Position.Line
	}
	var syntax yaml.Error
	if errors.As(err, &syntax) && syntax.GetToken() != nil { // its text shows the place over several lines
		e.Line, e.Err = syntax.GetToken().Position.Line, errors.New(syntax.GetMessage())
	}
	return e
}
