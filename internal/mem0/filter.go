package mem0

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// condition reports whether a memory passes a filter.
type condition func(*Memory) bool

// any matches every non-null value of an entity.
const anyEntity = "*"

// filter is a read: the scope that the native API is asked for, and what has to
// be compared after it.
type filter struct {
	// named are the entities that every memory of the answer has, by member.
	named map[string]string
	// scoped: the filter restricts some entity positively.
	scoped bool
	rest   []condition
}

func (f *filter) matches(m *Memory) bool {
	for _, c := range f.rest {
		if !c(m) {
			return false
		}
	}
	return true
}

const maxDepth = 16

// readFilter reads the filters of a search or a list.
func readFilter(raw map[string]any) (*filter, error) {
	f := &filter{named: map[string]string{}}
	c, err := f.all(raw, true, 0)
	if err != nil {
		return nil, err
	}
	f.rest = append(f.rest, c)
	return f, nil
}

// all is the conjunction of an object's members. Every memory of the answer
// passes an object that is sure.
func (f *filter) all(raw map[string]any, sure bool, depth int) (condition, error) {
	if depth > maxDepth {
		return nil, invalid("filters nest deeper than %d levels", maxDepth)
	}
	var all []condition
	for _, name := range slices.Sorted(maps.Keys(raw)) {
		c, err := f.member(name, raw[name], sure, depth)
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return func(m *Memory) bool { return !slices.ContainsFunc(all, func(c condition) bool { return !c(m) }) }, nil
}

func (f *filter) member(name string, v any, sure bool, depth int) (condition, error) {
	switch name {
	case "AND", "OR", "NOT":
		return f.combined(name, v, sure, depth)
	case "user_id", "agent_id", "app_id", "run_id":
		return f.entity(name, v, sure)
	case "created_at", "updated_at", "timestamp", "expiration_date":
		return compared(name, v, moment(name))
	case "text", "keywords":
		return compared(name, v, func(m *Memory) any { return m.Memory })
	case "categories":
		return compared(name, v, func(m *Memory) any { return m.Categories })
	case "memory_ids":
		return compared(name, v, func(m *Memory) any { return m.ID })
	case "metadata":
		return metadata(v)
	}
	return nil, invalid("filters: %q is not a field; known are AND, OR, NOT, user_id, agent_id, app_id, run_id, created_at, "+
		"updated_at, timestamp, expiration_date, text, categories, metadata, keywords and memory_ids", clip(name))
}

// combined reads AND, OR and NOT. One object stands for a list of one.
func (f *filter) combined(name string, v any, sure bool, depth int) (condition, error) {
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	var parts []condition
	for _, each := range list {
		raw, ok := each.(map[string]any)
		if !ok {
			return nil, invalid("filters: %s takes objects", name)
		}
		part := f
		if name == "NOT" {
			part = &filter{named: map[string]string{}} // restricts nothing positively
		}
		c, err := part.all(raw, sure && name == "AND", depth+1)
		if err != nil {
			return nil, err
		}
		parts = append(parts, c)
	}
	some := func(m *Memory) bool { return slices.ContainsFunc(parts, func(c condition) bool { return c(m) }) }
	switch name {
	case "OR":
		return some, nil
	case "NOT":
		return func(m *Memory) bool { return !some(m) }, nil
	}
	return func(m *Memory) bool {
		return !slices.ContainsFunc(parts, func(c condition) bool { return !c(m) })
	}, nil
}

// entity reads a restriction of one entity.
func (f *filter) entity(name string, v any, sure bool) (condition, error) {
	id, bare := v.(string)
	if operators, ok := v.(map[string]any); ok && len(operators) == 1 {
		if eq, ok := operators["eq"].(string); ok {
			id, bare = eq, true
		}
	}
	if bare && id == "" {
		return nil, invalid("filters: %s is empty", name)
	}
	switch {
	case bare && id == anyEntity:
		f.scoped = true
		return func(m *Memory) bool { return len(entityIDs(m, name)) > 0 }, nil
	case bare:
		f.scoped = true
		if _, twice := f.named[name]; sure && !twice {
			f.named[name] = id
		}
	default:
		operators, ok := v.(map[string]any)
		if !ok {
			return nil, invalid("filters: %s takes a text or an object of operators", name)
		}
		if _, in := operators["in"]; in {
			f.scoped = true
		}
	}
	return compared(name, v, func(m *Memory) any { return entityIDs(m, name) })
}

// entityIDs lists the ids of one kind that a memory has; a memory may come from
// several runs.
func entityIDs(m *Memory, name string) []string {
	one := map[string]*string{"user_id": m.UserID, "agent_id": m.AgentID, "app_id": m.AppID}[name]
	switch {
	case name == "run_id":
		return m.runs
	case one == nil:
		return nil
	}
	return []string{*one}
}

// metadata compares members of the caller's metadata.
func metadata(v any) (condition, error) {
	raw, ok := v.(map[string]any)
	if !ok {
		return nil, invalid("filters: metadata takes an object")
	}
	var all []condition
	for _, name := range slices.Sorted(maps.Keys(raw)) {
		c, err := compared("metadata."+name, raw[name], func(m *Memory) any { return m.Metadata[name] })
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return func(m *Memory) bool { return !slices.ContainsFunc(all, func(c condition) bool { return !c(m) }) }, nil
}

// moment returns a member that is a time or a date as text.
func moment(name string) func(*Memory) any {
	return func(m *Memory) any {
		switch name {
		case "updated_at":
			return m.UpdatedAt
		case "expiration_date":
			if m.ExpirationDate == nil {
				return nil
			}
			return *m.ExpirationDate
		}
		return m.CreatedAt
	}
}

// compared reads a bare value, a list of values or an object of operators.
func compared(name string, v any, of func(*Memory) any) (condition, error) {
	operators, ok := v.(map[string]any)
	if list, isList := v.([]any); isList {
		operators, ok = map[string]any{"in": list}, true
	}
	if !ok {
		operators = map[string]any{"eq": v}
	}
	for op, value := range operators {
		_, list := value.([]any)
		if !slices.Contains([]string{"eq", "ne", "in", "nin", "gt", "gte", "lt", "lte", "contains", "icontains"}, op) {
			return nil, invalid("filters: %s: %q is not an operator; known are eq, ne, in, nin, gt, gte, lt, lte, contains and icontains", clip(name), clip(op))
		}
		if list != (op == "in" || op == "nin") {
			return nil, invalid("filters: %s: %s takes %s", clip(name), op, map[bool]string{true: "one value", false: "a list"}[list])
		}
	}
	return func(m *Memory) bool {
		have := of(m)
		for op, value := range operators {
			if !holds(op, have, value) {
				return false
			}
		}
		return true
	}, nil
}

// holds applies one operator. A list of the memory passes where one of its
// elements does.
func holds(op string, have, want any) bool {
	switch op {
	case "ne":
		return !holds("eq", have, want)
	case "nin":
		return !holds("in", have, want)
	case "in":
		return slices.ContainsFunc(want.([]any), func(w any) bool { return holds("eq", have, w) })
	}
	for _, h := range elements(have) {
		if holdsOne(op, h, want) {
			return true
		}
	}
	return false
}

func elements(have any) []any {
	switch have := have.(type) {
	case nil:
		return nil
	case []any:
		return have
	case []string:
		out := make([]any, len(have))
		for i, h := range have {
			out[i] = h
		}
		return out
	}
	return []any{have}
}

func holdsOne(op string, have, want any) bool {
	switch op {
	case "contains":
		return strings.Contains(plain(have), plain(want))
	case "icontains":
		return strings.Contains(strings.ToLower(plain(have)), strings.ToLower(plain(want)))
	}
	order, ok := order(have, want)
	switch op {
	case "eq":
		return ok && order == 0
	case "gt":
		return ok && order > 0
	case "gte":
		return ok && order >= 0
	case "lt":
		return ok && order < 0
	}
	return ok && order <= 0 // lte
}

// order compares two values of one type; a time also with a text of a time.
func order(have, want any) (int, bool) {
	switch h := have.(type) {
	case time.Time:
		w, ok := instant(want)
		if date, isText := want.(string); isText && len(date) == len(time.DateOnly) {
			h = h.UTC().Truncate(24 * time.Hour)
		}
		return h.Compare(w), ok
	case float64:
		w, ok := want.(float64)
		return cmp.Compare(h, w), ok
	case string:
		w, ok := want.(string)
		return cmp.Compare(h, w), ok
	case bool:
		w, ok := want.(bool)
		return cmp.Compare(strconv.FormatBool(h), strconv.FormatBool(w)), ok
	}
	return 0, false
}

// instant reads RFC 3339, a bare date or unix seconds.
func instant(v any) (time.Time, bool) {
	switch v := v.(type) {
	case float64:
		return time.UnixMilli(int64(v * 1000)).UTC(), true
	case string:
		for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05", time.DateOnly} {
			if at, err := time.Parse(layout, v); err == nil {
				return at, true
			}
		}
	}
	return time.Time{}, false
}

func plain(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	text, _ := json.Marshal(v) // of a value that came from JSON
	return string(text)
}

// clip keeps an answer from repeating a long text.
func clip(s string) string {
	const most = 64
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
