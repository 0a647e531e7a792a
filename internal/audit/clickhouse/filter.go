package clickhouse

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"palimpsest/internal/filter"
)

// textColumns and numberColumns are the columns of audit by field, timeColumns those
// of instants that every record has. A text that is missing is the empty string.
var (
	textColumns = map[string]string{
		"user": "user_id", "agent": "agent_id", "session": "session_id", "delta_id": "delta_id", "kind": "kind", "reason": "reason", "rule": "rule",
		"rule_id": "rule_id", "decided_by": "decided_by", "fact_id": "fact_id", "request_id": "request_id", "candidate_id": "candidate_id",
		"correlation_id": "correlation_id",
	}
	numberColumns = map[string]string{"revision": "revision", "index": "idx", "sequence": "sequence", "confidence": "confidence"}
	timeColumns   = map[string]string{"decided_at": "decided_at", "applied_at": "applied_at"}
)

// maxValue bounds the bytes of a text that travels as a parameter: over HTTP they
// all stand in the address, which the server bounds.
const maxValue = 256

// matched leaves out the effects of a page that hold no record which may match. An
// effect whose records are no longer kept may.
func (l *Log) matched(ctx context.Context, project string, page []spot, matching filter.Expr) ([]spot, error) {
	var w weakening
	condition, ok := filter.Weaken(matching, filter.Backend[string]{Cond: w.translate, And: joined(" AND "), Or: joined(" OR "), None: "false"})
	if !ok || len(page) == 0 {
		return page, nil
	}
	if err := l.enter(); err != nil {
		return nil, err
	}
	defer l.leave()
	w.args = append(w.args, clickhouse.Named("project", project),
		clickhouse.Named("first", page[0].sequence), clickhouse.Named("last", page[len(page)-1].sequence))
	skip := map[spot]bool{}
	_, err := collect(ctx, l.conn, func(rows driver.Rows) (none struct{}, err error) {
		var at spot
		err = rows.Scan(&at.sequence, &at.scope, &at.revision)
		skip[at] = true
		return none, err
	}, `SELECT sequence, scope, revision FROM audit WHERE project = {project:String} AND sequence BETWEEN {first:UInt64} AND {last:UInt64}
		GROUP BY sequence, scope, revision HAVING countIf(`+condition+`) = 0`, w.args...)
	return slices.DeleteFunc(page, func(at spot) bool { return skip[at] }), err
}

func joined(with string) func([]string) string {
	return func(list []string) string { return "(" + strings.Join(list, with) + ")" }
}

var comparisons = map[filter.Op]string{filter.Eq: "=", filter.In: "=", filter.Gt: ">", filter.Gte: ">=", filter.Lt: "<", filter.Lte: "<="}

// weakening collects the parameters of a condition.
type weakening struct{ args []any }

// bind names a parameter.
func (w *weakening) bind(value any, kind string) string {
	name := "f" + strconv.Itoa(len(w.args))
	w.args = append(w.args, clickhouse.Named(name, value))
	return "{" + name + ":" + kind + "}"
}

// translate is the [filter.Backend] of records.
func (w *weakening) translate(c filter.Cond, negated bool) (string, bool) {
	var one func(filter.Value) string
	sign, compares := comparisons[c.Op]
	text, isText := textColumns[c.Field.Name]
	number, isNumber := numberColumns[c.Field.Name]
	at, isTime := timeColumns[c.Field.Name]
	switch {
	case slices.ContainsFunc(c.Values, func(v filter.Value) bool { return len(v.Text) > maxValue }):
		return "", false
	case isText && c.Op == filter.Contains:
		one = func(v filter.Value) string { return "position(" + text + ", " + w.bind(v.Text, "String") + ") > 0" }
	case isText && compares:
		one = func(v filter.Value) string { return text + " " + sign + " " + w.bind(v.Text, "String") }
	case c.Field.Name == "source_episode_ids" && sign == "=" && !negated:
		one = func(v filter.Value) string { return "has(sources, " + w.bind(v.Text, "String") + ")" }
	case isNumber && compares: // the evaluator compares floating-point numbers
		one = func(v filter.Value) string {
			return fmt.Sprintf("toFloat64(%s) %s %s", number, sign, w.bind(v.Number, "Float64"))
		}
	case isTime && compares && !negated: // the column is bounded: equal ones may differ
		one = func(v filter.Value) string {
			name := "f" + strconv.Itoa(len(w.args))
			w.args = append(w.args, clickhouse.DateNamed(name, bounded(v.At), clickhouse.NanoSeconds))
			return at + " " + strings.TrimSuffix(sign, "=") + "= {" + name + ":DateTime64(9, 'UTC')}"
		}
	default:
		return "", false
	}
	list := make([]string, len(c.Values))
	for i, v := range c.Values {
		list[i] = one(v)
	}
	out := "false"
	if len(list) > 0 {
		out = joined(" OR ")(list)
	}
	if isText {
		out = "(" + text + " <> '' AND " + out + ")"
	}
	if negated {
		out = "NOT " + out
	}
	return out, true
}
