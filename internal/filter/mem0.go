package filter

import (
	"maps"
	"slices"
	"strings"

	"palimpsest/internal/lex"
	"palimpsest/pkg/events"
)

// mem0Fields are mem0's own names for fields. Other names of the schema are not
// known to it: they are keys of the metadata, as any name is.
var mem0Fields = map[string]string{
	"memory": "text", "data": "text", "text": "text", "keywords": "text", "id": "id", "memory_ids": "id", "hash": "hash",
	"user_id": "user", "agent_id": "agent", "run_id": "session", "category": "category", "categories": "category",
	"created_at": "created_at", "updated_at": "updated_at", "timestamp": "event_time",
	"app_id": metadataField + "." + Mem0App, "expiration_date": metadataField + "." + Mem0Expires,
}

// Mem0App and Mem0Expires are metadata keys of facts for members of mem0 that no
// field has.
const (
	Mem0App     = mem0Escape + "app_id"
	Mem0Expires = mem0Escape + "expiration_date"
)

const mem0Escape = "mem0."

// meanings are metadata keys of episodes that change what becomes of them.
var meanings = []string{
	events.MetaIntent, events.MetaReplaces, events.MetaSubject, events.MetaPredicate, events.MetaObject, events.MetaTimezone,
}

// Mem0Key returns the metadata key that keeps the key of a client of mem0. It
// differs where the key has a meaning of its own.
func Mem0Key(key string) string {
	if slices.Contains(meanings, key) || strings.HasPrefix(key, mem0Escape) {
		return mem0Escape + key
	}
	return key
}

// Mem0Caller returns the key of which [Mem0Key] made key. ok is false for [Mem0App]
// and [Mem0Expires].
func Mem0Caller(key string) (caller string, ok bool) {
	return strings.TrimPrefix(key, mem0Escape), key != Mem0App && key != Mem0Expires
}

// siblings reads names side by side.
func (r *reader) siblings(object map[string]any, path string, depth int) (Expr, *Error) {
	all := And{}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		operand := object[name]
		var e Expr
		var err *Error
		switch name {
		case "AND", "OR", "NOT":
			e, err = r.connective(name, operand, path, depth+1)
		case metadataField:
			e, err = r.keys(operand, path+"."+name, depth+1)
		default:
			e, err = r.named(name, operand, path+"."+lex.Clip(name), depth+1)
		}
		if err != nil {
			return nil, err
		}
		all = append(all, e)
	}
	if len(all) == 1 {
		return all[0], nil
	}
	return all, nil
}

// keys reads {"metadata": {key: …}}.
func (r *reader) keys(operand any, path string, depth int) (Expr, *Error) {
	object, ok := operand.(map[string]any)
	if !ok {
		return nil, at(path, refuse("must be an object of keys"))
	}
	if err := r.node(depth); err != nil {
		return nil, at(path, err)
	}
	all := And{}
	for _, key := range slices.Sorted(maps.Keys(object)) {
		e, err := r.named(metadataField+"."+key, object[key], path+"."+lex.Clip(key), depth+1)
		if err != nil {
			return nil, err
		}
		all = append(all, e)
	}
	return all, nil
}

// named reads what stands behind a name: a value, an array of them, or operators
// with their values.
func (r *reader) named(name string, operand any, path string, depth int) (Expr, *Error) {
	if err := r.node(depth); err != nil {
		return nil, at(path, err)
	}
	object, ok := operand.(map[string]any)
	if !ok {
		op := Eq
		if _, list := operand.([]any); list {
			op = In
		}
		e, err := r.compare(name, op, operand)
		return e, at(path, err)
	}
	all := And{}
	for _, text := range slices.Sorted(maps.Keys(object)) {
		op, err := operator(text)
		if err == nil {
			err = r.node(depth + 1)
		}
		if err != nil {
			return nil, at(path+"."+lex.Clip(text), err)
		}
		e, err := r.compare(name, op, object[text])
		if err != nil {
			return nil, at(path+"."+lex.Clip(text), err)
		}
		all = append(all, e)
	}
	if len(all) == 0 {
		return nil, at(path, refuse("names no operator"))
	}
	if len(all) == 1 {
		return all[0], nil
	}
	return all, nil
}

// compare makes a condition of mem0's names and conventions.
func (r *reader) compare(name string, op Op, v any) (Expr, *Error) {
	real, ok := mem0Fields[name]
	if !ok {
		real = metadataField + "." + Mem0Key(strings.TrimPrefix(name, metadataField+"."))
	}
	f, failed := r.schema.Field(real)
	if failed != nil {
		return nil, asError(failed)
	}
	if name == "categories" && op == Contains {
		op = Eq // it is a list to mem0
	}
	switch {
	case v == "*" && (op == Eq || op == Ne):
		e, err := r.cond(f, Exists)
		if op == Ne && err == nil {
			e = Not{e}
		}
		return e, err
	case op == Exists:
		return r.cond(f, op)
	}
	return r.with(f, op, v)
}
