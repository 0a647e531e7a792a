package sqlite

import (
	"context"
	"strings"

	"palimpsest/internal/filter"
)

// textColumns, numberColumns are the columns of records by field. A text that is
// missing is the empty string.
var (
	textColumns = map[string]string{
		"user": "user_id", "agent": "agent_id", "session": "session_id", "kind": "kind", "rule": "rule", "fact_id": "fact_id", "correlation_id": "correlation",
	}
	numberColumns = map[string]string{"revision": "revision", "index": "idx", "sequence": "sequence"}
)

const selectUnmatched = `SELECT scope, revision FROM records WHERE project = ? AND sequence BETWEEN ? AND ?
	GROUP BY scope, revision HAVING NOT max(`

// unmatched are the effects of a page that hold no record which may match, so that
// they need not be read whole.
func (l *Log) unmatched(ctx context.Context, page []spot, matching filter.Expr) (map[place]bool, error) {
	weak, ok := filter.Weaken(matching, filter.Backend[condition]{Cond: translate, And: joined(" AND "), Or: joined(" OR "), None: condition{sql: "FALSE"}})
	if !ok || len(page) == 0 {
		return nil, nil
	}
	ctx, leave, err := l.request(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	first, last := page[0], page[len(page)-1]
	query := selectUnmatched + weak.sql + ")" //nolint:gosec // its values are parameters
	rows, err := l.reads.QueryContext(ctx, query, append([]any{first.project, first.sequence, last.sequence}, weak.args...)...)
	if err != nil {
		return nil, err
	}
	defer rows.Close() //nolint:errcheck // rows.Err tells
	out := map[place]bool{}
	for rows.Next() {
		at := place{project: first.project}
		if err := rows.Scan(&at.scope, &at.revision); err != nil {
			return nil, err
		}
		out[at] = true
	}
	return out, rows.Err()
}

// condition is SQL with its parameters.
type condition struct {
	sql  string
	args []any
}

func joined(with string) func([]condition) condition {
	return func(list []condition) condition {
		var out condition
		texts := make([]string, len(list))
		for i, c := range list {
			texts[i] = c.sql
			out.args = append(out.args, c.args...)
		}
		out.sql = balanced(texts, with)
		return out
	}
}

// balanced joins conditions as a tree of little depth: SQLite refuses one of more than
// 1,000 levels, and a chain has one for each operator.
func balanced(texts []string, with string) string {
	if len(texts) <= 2 {
		return "(" + strings.Join(texts, with) + ")"
	}
	half := len(texts) / 2
	return "(" + balanced(texts[:half], with) + with + balanced(texts[half:], with) + ")"
}

var comparisons = map[filter.Op]string{filter.Eq: "=", filter.In: "=", filter.Gt: ">", filter.Gte: ">=", filter.Lt: "<", filter.Lte: "<="}

// translate is the [filter.Backend] of records.
func translate(c filter.Cond, negated bool) (condition, bool) {
	var one func(filter.Value) condition
	sign, compares := comparisons[c.Op]
	text, isText := textColumns[c.Field.Name]
	number, isNumber := numberColumns[c.Field.Name]
	switch {
	case isText && c.Op == filter.Contains:
		one = func(v filter.Value) condition { return condition{"instr(" + text + ", ?) > 0", []any{v.Text}} }
	case isText && compares:
		one = func(v filter.Value) condition { return condition{text + " " + sign + " ?", []any{v.Text}} }
	case isNumber && compares: // the evaluator compares floating-point numbers
		one = func(v filter.Value) condition {
			return condition{"CAST(" + number + " AS REAL) " + sign + " ?", []any{v.Number}}
		}
	case c.Field.Name == "applied_at" && compares && !negated: // in whole microseconds: equal ones may differ
		one = func(v filter.Value) condition {
			return condition{"applied_at " + strings.TrimSuffix(sign, "=") + "= ?", []any{v.At.UnixMicro()}}
		}
	default:
		return condition{}, false
	}
	list := make([]condition, len(c.Values))
	for i, v := range c.Values {
		list[i] = one(v)
	}
	out := condition{sql: "FALSE"}
	if len(list) > 0 {
		out = joined(" OR ")(list)
	}
	if isText {
		out.sql = "(" + text + " <> '' AND " + out.sql + ")"
	}
	if negated {
		out.sql = "NOT " + out.sql
	}
	return out, true
}
