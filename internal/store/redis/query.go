package redis

import (
	"context"
	"math"
	"strconv"
	"strings"
	"time"

	"palimpsest/pkg/scope"
)

// query is a search under construction. Whatever a user may have chosen goes
// through a parameter; the text holds names and numbers of ours alone.
type query struct {
	clauses []string
	params  []any
}

func (q *query) param(value any) string {
	name := "p" + strconv.Itoa(len(q.params)/2)
	q.params = append(q.params, name, value)
	return "$" + name
}

// tag keeps rows that have any of the values in a field.
func (q *query) tag(field string, values ...string) *query {
	names := make([]string, len(values))
	for i, v := range values {
		names[i] = q.param(v)
	}
	q.clauses = append(q.clauses, "@"+field+":{"+strings.Join(names, "|")+"}")
	return q
}

// atLeast, above, atMost and below bound a number.
func (q *query) atLeast(field string, n int64) *query { return q.between(field, number(n), "+inf") }
func (q *query) above(field string, n int64) *query   { return q.between(field, "("+number(n), "+inf") }
func (q *query) atMost(field string, n int64) *query  { return q.between(field, "-inf", number(n)) }
func (q *query) below(field string, n int64) *query   { return q.between(field, "-inf", "("+number(n)) }

func (q *query) between(field, from, to string) *query {
	q.clauses = append(q.clauses, "@"+field+":["+from+" "+to+"]")
	return q
}

func (q *query) clause(text string) *query {
	q.clauses = append(q.clauses, text)
	return q
}

func (q *query) text() string { return strings.Join(q.clauses, " ") }

// of begins a search for rows of one kind.
func of(kinds ...string) *query { return new(query).tag("k", kinds...) }

// in keeps the rows of fact scopes.
func (q *query) in(places ...place) *query {
	tags := make([]string, len(places))
	for i, p := range places {
		tags[i] = p.tag
	}
	return q.tag("sc", tags...)
}

// within keeps the rows filed under scopes that sel matches. A row's levels are
// those of its scope: the full one for episodes, else the fact scope.
func (q *query) within(l layout, sel scope.Selector) *query {
	if sel.User != nil && sel.Agent != nil && sel.Session != nil {
		full := scope.Scope{Project: sel.Project, User: *sel.User, Agent: *sel.Agent, Session: *sel.Session}
		return q.in(l.place(full.Fact())).tag("x", levelTag(full.Session))
	}
	q.tag("p", scope.Encode(sel.Project))
	for _, level := range []struct {
		field string
		id    *string
	}{{"u", sel.User}, {"a", sel.Agent}, {"x", sel.Session}} {
		if level.id != nil {
			q.tag(level.field, levelTag(*level.id))
		}
	}
	return q
}

// allRows is more rows than any answer has: without a limit the server gives ten.
const allRows = 1_000_000

// The commands that search.
const (
	searchCommand    = "FT.SEARCH"
	aggregateCommand = "FT.AGGREGATE"
)

// searchArgs is FT.SEARCH; options come before the parameters.
func (s *Store) searchArgs(q *query, limit int, options ...any) []any {
	args := append([]any{searchCommand, s.layout().index(), q.text()}, options...)
	return s.close(append(args, "LIMIT", 0, limit), q)
}

// aggregateArgs is FT.AGGREGATE, whose steps take effect in their order.
func (s *Store) aggregateArgs(q *query, steps ...any) []any {
	return s.close(append([]any{aggregateCommand, s.layout().index(), q.text()}, steps...), q)
}

func (s *Store) close(args []any, q *query) []any {
	args = append(args, "TIMEOUT", max(1, s.cfg.QueryTimeout.Milliseconds()))
	if len(q.params) > 0 {
		args = append(append(args, "PARAMS", len(q.params)), q.params...)
	}
	return append(args, "DIALECT", 2)
}

func (s *Store) search(ctx context.Context, args []any) (answer, error) {
	reply, err := s.call(ctx, args...)
	return answerOf(reply), err
}

// returning names the fields that a search brings along.
func returning(names ...any) []any { return append([]any{"RETURN", len(names)}, names...) }

// page reads rows in an order of several fields, each with its direction, from
// where a filter (of ours alone) says.
func (s *Store) page(ctx context.Context, q *query, filter string, order []any, limit int, names ...any) ([]found, error) {
	var steps []any
	if filter != "" {
		steps = append(steps, "FILTER", filter)
	}
	steps = append(steps, "SORTBY", len(order))
	steps = append(steps, order...)
	steps = append(steps, "MAX", limit, "LOAD", len(names))
	steps = append(append(steps, names...), "LIMIT", 0, limit)
	a, err := s.search(ctx, s.aggregateArgs(q, steps...))
	return a.rows, err
}

func number(n int64) string { return strconv.FormatInt(n, 10) }

// micros is the unit of all instants; the index keeps them exactly from the year
// 1684 to 2255, beyond which neighbours within some microseconds are one to it.
func micros(t time.Time) int64 { return t.UnixMicro() }

func fromMicros(us int64) time.Time { return time.UnixMicro(us).UTC() }

// never stands for no end in time.
const never = int64(math.MaxInt64 / 2)

// clampOrdinal fits an ordinal into a bound.
func clampOrdinal(n uint64) int64 { return int64(min(n, uint64(never))) }
