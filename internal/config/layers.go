package config

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// EnvPrefix begins every environment variable: query.max_wait is
// PALIMPSEST_QUERY_MAX_WAIT.
const EnvPrefix = "PALIMPSEST_"

// File lays a YAML file over the settings.
func (s *Settings) File(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read configuration: %w", err)
	}
	return s.YAML(path, text)
}

// YAML lays a YAML document over the settings. Every key that does not fit is
// named with its line.
func (s *Settings) YAML(name string, text []byte) error {
	file, err := parser.ParseBytes(text, 0)
	if err != nil {
		var syntax yaml.Error
		if errors.As(err, &syntax) && syntax.GetToken() != nil { // its text shows the place over several lines
			return fmt.Errorf("%s:%d: %s", name, syntax.GetToken().Position.Line, syntax.GetMessage())
		}
		return fmt.Errorf("%s: %w", name, err)
	}
	var errs []error
	for _, doc := range file.Docs {
		errs = append(errs, s.node(name, "", doc.Body)...)
	}
	return errors.Join(errs...)
}

func (s *Settings) node(name, prefix string, n ast.Node) []error {
	switch n := n.(type) {
	case nil, *ast.NullNode, *ast.CommentGroupNode:
		return nil
	case *ast.MappingNode:
		var errs []error
		for _, v := range n.Values {
			errs = append(errs, s.entry(name, prefix, v)...)
		}
		return errs
	case *ast.MappingValueNode:
		return s.entry(name, prefix, n)
	}
	return []error{fmt.Errorf("%s:%d: %s: needs keys below it", name, n.GetToken().Position.Line, strings.TrimSuffix(prefix, "."))}
}

func (s *Settings) entry(name, prefix string, v *ast.MappingValueNode) []error {
	key := prefix + v.Key.GetToken().Value
	origin := Origin(fmt.Sprintf("%s:%d", name, v.Key.GetToken().Position.Line))
	if f, ok := s.fields[key]; ok && f.section != nil {
		if err := f.section.ReadYAML(name, v.Value); err != nil {
			return []error{err}
		}
		f.origin = origin
		return nil
	}
	switch value := v.Value.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		return s.node(name, key+".", value)
	case *ast.SequenceNode:
		items := make([]string, 0, len(value.Values))
		for _, item := range value.Values {
			items = append(items, item.GetToken().Value)
		}
		return s.try(key, strings.Join(items, ","), origin)
	case *ast.NullNode:
		return nil
	default:
		return s.try(key, value.GetToken().Value, origin)
	}
}

func (s *Settings) try(key, text string, origin Origin) []error {
	if err := s.Set(key, text, origin); err != nil {
		return []error{err}
	}
	return nil
}

// Fallbacks lays variables of other names over the settings, those that are set
// and not empty: names maps each to its key.
func (s *Settings) Fallbacks(environ []string, names map[string]string) error {
	var errs []error
	for _, pair := range environ {
		name, value, _ := strings.Cut(pair, "=")
		if key, ok := names[name]; ok && value != "" {
			errs = append(errs, s.Set(key, value, Origin("env "+name)))
		}
	}
	return errors.Join(errs...)
}

// Env lays environment variables (NAME=value) over the settings. An unknown
// name with our prefix is an error: it is a typing error more often than not.
func (s *Settings) Env(environ []string) error {
	byName := make(map[string]string, len(s.order))
	for _, key := range s.order {
		byName[EnvPrefix+strings.ToUpper(strings.ReplaceAll(key, ".", "_"))] = key
	}
	var errs []error
	for _, pair := range environ {
		name, value, _ := strings.Cut(pair, "=")
		if !strings.HasPrefix(name, EnvPrefix) {
			continue
		}
		key, ok := byName[name]
		if !ok {
			errs = append(errs, fmt.Errorf("environment: %w %s", ErrUnknownKey, name))
			continue
		}
		errs = append(errs, s.Set(key, value, Origin("env "+name)))
	}
	return errors.Join(errs...)
}
