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
	weak, ok := filter.Weaken(matching, filter.SQLBackend(translate))
	if !ok || len(page) == 0 {
		return nil, nil
	}
	ctx, leave, err := l.request(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	first, last := page[0], page[len(page)-1]
	query := selectUnmatched + weak.Text + ")" //nolint:gosec // its values are parameters
	rows, err := l.file.Read.QueryContext(ctx, query, append([]any{first.project, first.sequence, last.sequence}, weak.Args...)...)
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

var comparisons = map[filter.Op]string{filter.Eq: "=", filter.In: "=", filter.Gt: ">", filter.Gte: ">=", filter.Lt: "<", filter.Lte: "<="}

// translate is the [filter.Backend] of records.
func translate(c filter.Cond, negated bool) (filter.SQL, bool) {
	var one func(filter.Value) filter.SQL
	sign, compares := comparisons[c.Op]
	text, isText := textColumns[c.Field.Name]
	number, isNumber := numberColumns[c.Field.Name]
	switch {
	case isText && c.Op == filter.Contains:
		one = func(v filter.Value) filter.SQL {
			return filter.SQL{Text: "instr(" + text + ", ?) > 0", Args: []any{v.Text}}
		}
	case isText && compares:
		one = func(v filter.Value) filter.SQL {
			return filter.SQL{Text: text + " " + sign + " ?", Args: []any{v.Text}}
		}
	case isNumber && compares: // the evaluator compares floating-point numbers
		one = func(v filter.Value) filter.SQL {
			return filter.SQL{Text: "CAST(" + number + " AS REAL) " + sign + " ?", Args: []any{v.Number}}
		}
	case c.Field.Name == "applied_at" && compares && !negated: // in whole microseconds: equal ones may differ
		one = func(v filter.Value) filter.SQL {
			return filter.SQL{Text: "applied_at " + strings.TrimSuffix(sign, "=") + "= ?", Args: []any{v.At.UnixMicro()}}
		}
	default:
		return filter.SQL{}, false
	}
	list := make([]filter.SQL, len(c.Values))
	for i, v := range c.Values {
		list[i] = one(v)
	}
	out := filter.SQL{Text: "FALSE"}
	if len(list) > 0 {
		out = filter.JoinSQL(list, " OR ")
	}
	if isText {
		out.Text = "(" + text + " <> '' AND " + out.Text + ")"
	}
	if negated {
		out.Text = "NOT " + out.Text
	}
	return out, true
}
