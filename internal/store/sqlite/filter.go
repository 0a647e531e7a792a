package sqlite

import (
	"slices"
	"strings"
	"time"

	"palimpsest/internal/filter"
	"palimpsest/internal/store"
)

// columns are how the fields of one kind of row stand in SQL.
type columns struct {
	constant func(filter.Cond) (match, ok bool)
	// text columns hold no null, and the empty string where the field is missing;
	// times are microseconds, null or the zero time where it is missing.
	text, times, numbers map[string]string
	// list is a table with one row for each element.
	list map[string]string
	// body is the column whose JSON holds the fields in inBody.
	body   string
	inBody []string
}

var factColumns = columns{
	constant: store.OfFact,
	text: map[string]string{
		"id": "f.id", "kind": "f.kind", "hash": "f.hash", "subject": "f.subject", "predicate": "f.predicate", "user": "s.user", "agent": "s.agent",
	},
	times: map[string]string{
		"created_at": "f.created_at", "event_time": "f.event_time", "valid_from": "f.valid_from", "valid_until": "f.valid_until",
		"archived_at": "f.archived_at", "last_accessed": "f.last_accessed",
	},
	numbers: map[string]string{"revision": "f.revision", "access_count": "f.access_count"},
	list:    map[string]string{"session": "EXISTS (SELECT 1 FROM fact_sessions fs WHERE fs.fact = f.row AND fs.session "},
	body:    "f.body",
	inBody: []string{
		"text", "category", "object", "cardinality", "sensitivity", "evidence_quote", "source_type", "role", "rule_id",
		"source_episode_ids", "entity_ids", "supersedes", "superseded_by", "metadata",
	},
}

var episodeColumns = columns{
	constant: store.OfEpisode,
	text: map[string]string{
		"id": "e.id", "text": "e.content", "role": "e.role", "mode": "e.mode", "source_node": "e.node", "user": "s.user", "agent": "s.agent", "session": "p.session",
	},
	times:   map[string]string{"event_time": "e.ts", "created_at": "e.arrived"},
	numbers: map[string]string{"ordinal": "e.ordinal"},
	body:    "coalesce(e.metadata, '')",
	inBody:  []string{"metadata"},
}

// narrow appends what SQL can express of a filter to a condition that begins with
// AND. The rows that fulfil it still have to be matched.
func (c columns) narrow(where string, args []any, x *store.Filter) (string, []any) {
	if x == nil {
		return where, args
	}
	weak, ok := filter.Weaken(x.Expr, filter.SQLBackend(c.condition))
	if !ok {
		return where, args
	}
	return where + " AND " + weak.Text, append(args, weak.Args...)
}

// condition is one condition, in parentheses.
func (c columns) condition(cond filter.Cond, negated bool) (filter.SQL, bool) {
	out, ok := c.translate(cond, negated)
	out.Text = "(" + out.Text + ")"
	return out, ok
}

func (c columns) translate(cond filter.Cond, negated bool) (filter.SQL, bool) {
	if match, ok := c.constant(cond); ok {
		return filter.SQL{Text: "FALSE"}, match == negated
	}
	name := cond.Field.Name
	if column, ok := c.text[name]; ok {
		return c.ofText(column, cond, negated)
	}
	if table, ok := c.list[name]; ok && (cond.Op == filter.Eq || cond.Op == filter.In) {
		set, ok := setOf(cond.Values)
		return filter.SQL{Text: not(negated, table+set.Text+")"), Args: set.Args}, ok
	}
	if column, ok := c.times[name]; ok {
		return ofTime(column, cond, negated)
	}
	if column, ok := c.numbers[name]; ok && cond.Op != filter.Exists {
		return ofNumber(column, cond, negated)
	}
	if !negated && slices.Contains(c.inBody, name) {
		return c.inside(cond)
	}
	return filter.SQL{}, false
}

func not(negated bool, sql string) string {
	if negated {
		return "NOT (" + sql + ")"
	}
	return sql
}

// comparisons are the operators whose SQL is one sign.
var comparisons = map[filter.Op]string{filter.Eq: "=", filter.Gt: ">", filter.Gte: ">=", filter.Lt: "<", filter.Lte: "<="}

// setOf is IN with the values of a condition. A list is one parameter; SQLite ends a
// string of JSON at a NUL.
func setOf(values []filter.Value) (filter.SQL, bool) {
	list := make([]string, len(values))
	for i, v := range values {
		if list[i] = v.Text; strings.Contains(v.Text, "\x00") {
			return filter.SQL{}, false
		}
	}
	return filter.SQL{Text: "IN (SELECT value FROM json_each(?))", Args: []any{jsonList(list)}}, true
}

func (c columns) ofText(column string, cond filter.Cond, negated bool) (filter.SQL, bool) {
	present := column + " <> ''"
	switch cond.Op {
	case filter.Exists:
		return filter.SQL{Text: not(negated, present)}, true
	case filter.In:
		set, ok := setOf(cond.Values)
		return filter.SQL{Text: not(negated, present+" AND "+column+" "+set.Text), Args: set.Args}, ok
	case filter.Contains:
		return filter.SQL{Text: not(negated, present+" AND instr("+column+", ?) > 0"), Args: []any{cond.Values[0].Text}}, true
	case filter.Eq, filter.Gt, filter.Gte, filter.Lt, filter.Lte:
		return filter.SQL{Text: not(negated, present+" AND "+column+" "+comparisons[cond.Op]+" ?"), Args: []any{cond.Values[0].Text}}, true
	case filter.Ne, filter.Nin, filter.IContains: // SQL knows the case of ASCII alone
	}
	return filter.SQL{}, false
}

// ofTime compares whole microseconds with an instant that may be none.
func ofTime(column string, cond filter.Cond, negated bool) (filter.SQL, bool) {
	if cond.Op == filter.In || cond.Op == filter.Exists {
		return filter.SQL{}, false
	}
	at := cond.Values[0].At
	bound := micros(at)
	switch cond.Op {
	case filter.Gte, filter.Lt:
		bound = store.CeilMicros(at)
	case filter.Eq:
		if bound != store.CeilMicros(at) {
			return filter.SQL{Text: "FALSE"}, !negated
		}
	}
	sql, args := column+" "+comparisons[cond.Op]+" ?", []any{bound}
	if negated {
		sql, args = "("+column+" IS NULL OR "+column+" = ? OR NOT "+sql+")", []any{zeroTime, bound}
	}
	return filter.SQL{Text: sql, Args: args}, true
}

// zeroTime is the instant of a field that has none.
var zeroTime = micros(time.Time{})

func ofNumber(column string, cond filter.Cond, negated bool) (filter.SQL, bool) {
	if len(cond.Values) == 0 {
		return filter.SQL{Text: "FALSE"}, !negated
	}
	args := make([]any, len(cond.Values))
	for i, v := range cond.Values {
		args[i] = v.Number
	}
	if cond.Op == filter.In { // a chain of many comparisons is too deep for SQLite
		return filter.SQL{Text: not(negated, column+" IN (?"+strings.Repeat(", ?", len(args)-1)+")"), Args: args}, true
	}
	op := comparisons[cond.Op]
	return filter.SQL{Text: not(negated, column+" "+op+" ?"), Args: args}, op != ""
}

// inside looks for the text of a value in the JSON that would hold it. That is
// written in several ways unless it consists of plain characters.
func (c columns) inside(cond filter.Cond) (filter.SQL, bool) {
	var list []filter.SQL
	for _, v := range cond.Values {
		text := v.Text
		if v.Type != filter.Text || !plain(text) || v.Dated && cond.Field.Type == filter.Any {
			return filter.SQL{}, false
		}
		switch cond.Op {
		case filter.Eq, filter.In:
			text = `"` + text + `"`
		case filter.Contains:
		default:
			return filter.SQL{}, false
		}
		list = append(list, filter.SQL{Text: "instr(" + c.body + ", ?) > 0", Args: []any{text}})
	}
	if len(list) == 0 || len(list) > maxInside {
		return filter.SQL{}, false
	}
	return filter.JoinSQL(list, " OR "), true
}

// maxInside bounds the texts that one condition looks for in JSON.
const maxInside = 32

// plain reports whether every encoder writes text into JSON unchanged.
func plain(text string) bool {
	return strings.IndexFunc(text, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_' && r != ' ' && r != '.' && r != ':'
	}) < 0
}
