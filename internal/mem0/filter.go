package mem0

import (
	"encoding/json"
	"errors"
	"slices"
	"time"

	"palimpsest/internal/filter"
	"palimpsest/pkg/api"
)

// anyEntity stands for every id of an entity in a filter.
const anyEntity = "*"

// conditions are what a read asks for: the scope, and a filter for the rest.
type conditions struct {
	// named are the ids that every memory of the answer has, by scope level.
	named map[string]string
	// rest is nil where the scope says all.
	rest filter.Expr
}

// readConditions reads filters in mem0's notation. It refuses filters that restrict
// no entity positively.
func readConditions(raw any) (*conditions, error) {
	text, err := json.Marshal(raw)
	if err != nil {
		return nil, err
	}
	e, err := filter.ParseMem0(text)
	if err != nil {
		var refused *filter.Error
		if errors.As(err, &refused) {
			return nil, invalid("filters%s: %s", refused.Path, refused.Reason)
		}
		return nil, err
	}
	if !restricts(e) {
		return nil, errNoEntity
	}
	c := &conditions{named: map[string]string{}}
	c.rest = c.narrow(e)
	return c, nil
}

// restricts reports whether whatever e keeps has the id of some entity.
func restricts(e filter.Expr) bool {
	switch e := e.(type) {
	case filter.And:
		return slices.ContainsFunc(e, restricts)
	case filter.Or:
		return len(e) > 0 && !slices.ContainsFunc(e, func(x filter.Expr) bool { return !restricts(x) })
	case filter.Cond:
		entity := slices.Contains([]string{"user", "agent", "session"}, e.Field.Name) || e.Field.Path == filter.Mem0App
		return entity && slices.Contains([]filter.Op{filter.Eq, filter.In, filter.Exists}, e.Op)
	}
	return false
}

// narrow takes the levels of the scope that e requires, and returns what is left.
func (c *conditions) narrow(e filter.Expr) filter.Expr {
	switch e := e.(type) {
	case filter.And:
		var rest []filter.Expr
		for _, x := range e {
			rest = append(rest, c.narrow(x))
		}
		return filter.Both(rest...)
	case filter.Cond:
		level := slices.Contains([]string{"user", "agent", "session"}, e.Field.Name)
		if _, twice := c.named[e.Field.Name]; level && e.Op == filter.Eq && !twice {
			c.named[e.Field.Name] = e.Values[0].Text
			return nil
		}
	}
	return e
}

// selector is the scope to ask the native API for.
func (c *conditions) selector() api.Selector {
	var sel api.Selector
	for level, into := range map[string]**string{"user": &sel.User, "agent": &sel.Agent, "session": &sel.Session} {
		if id, named := c.named[level]; named {
			*into = &id
		}
	}
	sel.All = len(c.named) == 0
	return sel
}

// filters is the filter for the native API; nil asks for everything.
func (c *conditions) filters() json.RawMessage {
	if c.rest == nil {
		return nil
	}
	return filter.JSON(c.rest)
}

// unexpired adds that the last day of a memory has not passed.
func (c *conditions) unexpired(now time.Time) {
	f := filter.Field{Name: "metadata", Path: filter.Mem0Expires, Type: filter.Any}
	c.rest = filter.Both(c.rest, filter.Or{
		filter.Not{Expr: filter.Cond{Field: f, Op: filter.Exists}},
		filter.Cond{Field: f, Op: filter.Gte, Values: []filter.Value{filter.TextValue(now.UTC().Format(time.DateOnly))}},
	})
}

// seen returns a fact as a memory. The run that was asked for is its run.
func (c *conditions) seen(fact api.Fact) Memory {
	m := viewMemory(fact)
	if run, named := c.named["session"]; named && slices.Contains(m.runs, run) {
		m.RunID = &run
	}
	return m
}

// entityIDs lists the ids of one kind that a memory has; a memory may come from
// several runs.
func entityIDs(m *Memory, kind string) []string {
	if kind == "run" {
		return m.runs
	}
	id := map[string]*string{"user": m.UserID, "agent": m.AgentID, "app": m.AppID}[kind]
	if id == nil {
		return nil
	}
	return []string{*id}
}

// The unix seconds of the years 1 to 9999, which the native API takes.
const firstSecond, lastSecond = -62135596800, 253402300799

// instant reads RFC 3339, a bare date or unix seconds.
func instant(v any) (time.Time, bool) {
	switch v := v.(type) {
	case float64:
		if v >= firstSecond && v <= lastSecond {
			return time.UnixMilli(int64(v * 1000)).UTC(), true
		}
	case string:
		for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05", time.DateOnly} {
			if at, err := time.Parse(layout, v); err == nil {
				return at.UTC(), at.Unix() >= firstSecond && at.Unix() <= lastSecond
			}
		}
	}
	return time.Time{}, false
}
