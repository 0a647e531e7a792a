package filter

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"palimpsest/internal/lex"
	"palimpsest/pkg/events"
)

// ParseJSON reads the native notation: {"field", "operator", "value"}, {"AND": […]},
// {"OR": […]} or {"NOT": …}. The error is an [*Error].
func ParseJSON(raw []byte, s Schema) (Expr, error) {
	return parseJSON(raw, reader{builder: builder{schema: s}})
}

// ParseMem0 reads the notations that mem0's clients send: besides the native one
// {"name": value}, {"name": {"operator": value}} and several names side by side, all
// of which must match. Names that are not mem0's own are keys of the metadata, and
// "*" is any value. The error is an [*Error].
func ParseMem0(raw []byte) (Expr, error) {
	return parseJSON(raw, reader{builder: builder{schema: Memory}, mem0: true})
}

func parseJSON(raw []byte, r reader) (Expr, error) {
	var tree any
	if err := events.Unmarshal(raw, &tree); err != nil {
		var field *events.FieldError
		if errors.As(err, &field) {
			path := field.Field
			if path == "data" {
				path = ""
			} else if path != "" && path[0] != '[' {
				path = "." + path
			}
			return nil, &Error{Path: path, Reason: field.Reason}
		}
		return nil, refuse("%s", err)
	}
	e, err := r.read(tree, "", 1)
	if err != nil {
		return nil, err
	}
	return e, nil
}

// reader makes a tree of decoded JSON.
type reader struct {
	builder
	mem0 bool
}

// at says where an error is, unless that is known already.
func at(path string, err *Error) *Error {
	if err != nil && err.Path == "" {
		err.Path = path
	}
	return err
}

func (r *reader) read(tree any, path string, depth int) (Expr, *Error) {
	object, ok := tree.(map[string]any)
	if !ok {
		return nil, at(path, refuse("must be an object"))
	}
	if err := r.node(depth); err != nil {
		return nil, at(path, err)
	}
	if _, ok := object["field"]; ok && (!r.mem0 || object["operator"] != nil) {
		return r.condition(object, path)
	}
	if r.mem0 {
		return r.siblings(object, path, depth)
	}
	if len(object) != 1 {
		return nil, at(path, refuse("must have either field, operator and value, or one of AND, OR, NOT"))
	}
	for name, operand := range object {
		switch name {
		case "AND", "OR", "NOT":
			return r.connective(name, operand, path, depth)
		}
		known := []string{"AND", "OR", "NOT", "field", "operator", "value"}
		return nil, at(path+"."+lex.Clip(name), refuse("is an unknown member; the nearest known one is %q", lex.Nearest(name, known)))
	}
	return nil, nil
}

func (r *reader) connective(name string, operand any, path string, depth int) (Expr, *Error) {
	path += "." + name
	list, isList := operand.([]any)
	if name == "NOT" && !isList {
		e, err := r.read(operand, path, depth+1)
		return Not{e}, err
	}
	if !isList || name == "NOT" && !r.mem0 {
		return nil, at(path, refuse("must be %s", map[bool]string{true: "an object", false: "an array"}[name == "NOT"]))
	}
	es := make([]Expr, len(list))
	for i, operand := range list {
		var err *Error
		if es[i], err = r.read(operand, fmt.Sprintf("%s[%d]", path, i), depth+1); err != nil {
			return nil, err
		}
	}
	switch name {
	case "AND":
		return And(es), nil
	case "OR":
		return Or(es), nil
	}
	return Not{Or(es)}, at(path, r.node(depth+1)) // none of them
}

// condition reads {"field", "operator", "value"}.
func (r *reader) condition(object map[string]any, path string) (Expr, *Error) {
	known := []string{"field", "operator", "value"}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if !slices.Contains(known, name) {
			return nil, at(path+"."+lex.Clip(name), refuse("is an unknown member; the nearest known one is %q", lex.Nearest(name, known)))
		}
	}
	name, ok := object["field"].(string)
	if !ok {
		return nil, at(path+".field", refuse("must be a string"))
	}
	op, err := operator(object["operator"])
	if err != nil {
		return nil, at(path+".operator", err)
	}
	v, given := object["value"]
	switch {
	case op == Exists && given:
		return nil, at(path+".value", refuse("exists takes no value"))
	case op != Exists && !given:
		return nil, at(path+".value", refuse("is required"))
	}
	if r.mem0 {
		e, err := r.compare(name, op, v)
		return e, at(path, err)
	}
	f, failed := r.schema.Field(name)
	if failed != nil {
		return nil, at(path+".field", asError(failed))
	}
	e, err := r.with(f, op, v)
	return e, at(path+".value", err)
}

func asError(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return refuse("%s", err)
}

func operator(v any) (Op, *Error) {
	name, ok := v.(string)
	if !ok {
		return "", refuse("must be one of %s", strings.Join(opNames(), ", "))
	}
	if op := Op(name); slices.Contains(ops, op) {
		return op, nil
	}
	return "", refuse("unknown operator %q; the nearest known one is %q", lex.Clip(name), lex.Nearest(name, opNames()))
}

// with compares a field with the member "value".
func (r *reader) with(f Field, op Op, v any) (Expr, *Error) {
	list, isList := v.([]any)
	switch {
	case op == Exists:
		return r.cond(f, op)
	case op.takesList() && !isList:
		return nil, refuse("%s takes an array", op)
	case !op.takesList() && isList:
		return nil, refuse("%s takes one value, not an array; in takes several", op)
	case isList:
		return r.cond(f, op, list...)
	}
	return r.cond(f, op, v)
}
