package clickhouse

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"palimpsest/internal/audit"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// report runs a query in which each SPAN stands for the condition of q on the column
// that says when something was applied, and that ends with its limit.
func report[T any](ctx context.Context, l *Log, name string, q audit.ReportQuery, applied, query string, scan func(driver.Rows) (T, error)) ([]T, error) {
	if err := q.Validate(); err != nil {
		return nil, err
	}
	if err := l.enter(); err != nil {
		return nil, err
	}
	defer l.leave()
	where, args := conditions(q.Selector, audit.Query{From: q.From, To: q.To}, applied)
	all, err := collect(ctx, l.long, scan, strings.ReplaceAll(query, "SPAN", where)+" LIMIT {limit:UInt64}",
		append(args, clickhouse.Named("limit", q.Limit))...)
	if err != nil {
		return nil, fmt.Errorf("audit clickhouse: report %s: %w", name, plain(err))
	}
	return all, nil
}

// counted has a row for each day, rule and kind: off the view, which keeps them
// of whole days and projects, else off the records.
func counted(q audit.ReportQuery) (query, applied string) {
	sel := q.Selector
	if sel.User == nil && sel.Agent == nil && sel.Session == nil && whole(q.From) && whole(q.To) {
		return `SELECT day, rule, kind, uniqExactMerge(deltas) AS n FROM daily_deltas WHERE SPAN GROUP BY day, rule, kind`,
			"toDateTime64(day, 9, 'UTC')"
	}
	return `SELECT toDate(applied_at, 'UTC') AS day, rule, kind, count() AS n FROM (
			SELECT applied_at, rule, kind FROM audit WHERE SPAN LIMIT 1 BY ` + key + `)
		GROUP BY day, rule, kind`, appliedAt
}

const appliedAt = "applied_at"

// whole reports whether an instant bounds days, or nothing.
func whole(at time.Time) bool { return at.IsZero() || at.Equal(at.UTC().Truncate(24*time.Hour)) }

// DailyDeltas implements [audit.Reports].
func (l *Log) DailyDeltas(ctx context.Context, q audit.ReportQuery) ([]audit.DailyDeltas, error) {
	query, applied := counted(q)
	return report(ctx, l, "daily deltas", q, applied, "SELECT day, rule, kind, n FROM ("+query+") ORDER BY day, rule, kind",
		func(rows driver.Rows) (d audit.DailyDeltas, err error) {
			var kind string
			err = rows.Scan(&d.Day, &d.Rule, &kind, &d.Deltas)
			d.Kind = events.DeltaKind(kind)
			return d, err
		})
}

// Noops implements [audit.Reports].
func (l *Log) Noops(ctx context.Context, q audit.ReportQuery) ([]audit.Noops, error) {
	query, applied := counted(q)
	return report(ctx, l, "noops", q, applied, "SELECT rule, sum(n), sumIf(n, kind = 'noop') FROM ("+query+") GROUP BY rule ORDER BY rule",
		func(rows driver.Rows) (n audit.Noops, err error) {
			return n, rows.Scan(&n.Rule, &n.Deltas, &n.Noops)
		})
}

// Churn implements [audit.Reports].
func (l *Log) Churn(ctx context.Context, q audit.ReportQuery) ([]audit.Churn, error) {
	return report(ctx, l, "churn", q, appliedAt, `SELECT project, scope, fact_id, count() AS changes,
			countIf(value != '' AND nth > 1 AND value != before) AS flips
		FROM (
			SELECT project, scope, fact_id, value,
				row_number() OVER (PARTITION BY scope, fact_id, value ORDER BY sequence, idx) AS nth,
				lagInFrame(value) OVER (PARTITION BY scope, fact_id, value = '' ORDER BY sequence, idx
					ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS before
			FROM (SELECT project, scope, fact_id, value, sequence, idx FROM audit
				WHERE SPAN AND fact_id != '' AND kind IN ('add', 'update', 'delete') LIMIT 1 BY `+key+`))
		GROUP BY project, scope, fact_id HAVING changes > 1
		ORDER BY flips DESC, changes DESC, scope, fact_id`,
		func(rows driver.Rows) (c audit.Churn, err error) {
			var project, key string
			if err := rows.Scan(&project, &key, &c.FactID, &c.Changes, &c.Flips); err != nil {
				return c, err
			}
			c.Scope, err = scope.ParseKey(project, key)
			return c, err
		})
}

// Yield implements [audit.Reports].
func (l *Log) Yield(ctx context.Context, q audit.ReportQuery) ([]audit.Yield, error) {
	return report(ctx, l, "yield", q, "committed_at", `SELECT rule, extractor, sum(e) AS episodes, sum(c) AS candidates, sum(a)
		FROM (SELECT rule, extractor, episodes AS e, candidates AS c, adds AS a FROM effects WHERE SPAN LIMIT 1 BY project, scope, revision)
		GROUP BY rule, extractor HAVING episodes + candidates > 0 ORDER BY rule, extractor`,
		func(rows driver.Rows) (y audit.Yield, err error) {
			return y, rows.Scan(&y.Rule, &y.Extractor, &y.Episodes, &y.Candidates, &y.Adds)
		})
}

// Latency implements [audit.Reports]. The p-th percentile of n stands at place
// p * n / 100, rounded up, from 1. A record that adds or updates a fact has an
// event time, unless that is out of bounds.
func (l *Log) Latency(ctx context.Context, q audit.ReportQuery) ([]audit.Latency, error) {
	return report(ctx, l, "latency", q, appliedAt, `SELECT rule, length(all) AS n,
			all[intDiv(50 * n + 99, 100)], all[intDiv(95 * n + 99, 100)], all[intDiv(99 * n + 99, 100)]
		FROM (
			SELECT rule, arraySort(groupArray(`+milliseconds("applied_at")+" - "+milliseconds("assumeNotNull(event_time)")+`)) AS all
			FROM (SELECT rule, event_time, applied_at FROM audit
				WHERE SPAN AND kind IN ('add', 'update') AND event_time <= applied_at LIMIT 1 BY `+key+`)
			GROUP BY rule)
		ORDER BY rule`,
		func(rows driver.Rows) (d audit.Latency, err error) {
			var ms [3]int64
			if err := rows.Scan(&d.Rule, &d.Facts, &ms[0], &ms[1], &ms[2]); err != nil {
				return d, err
			}
			for i, into := range []*time.Duration{&d.P50, &d.P95, &d.P99} {
				*into = time.Duration(ms[i]) * time.Millisecond
			}
			return d, nil
		})
}

// milliseconds since 1970 of a column, rounded down before it, too.
func milliseconds(column string) string {
	nanos := "toUnixTimestamp64Nano(" + column + ")"
	return "intDiv(" + nanos + " - positiveModulo(" + nanos + ", 1000000), 1000000)"
}

// Cost implements [audit.Reports].
func (l *Log) Cost(ctx context.Context, q audit.ReportQuery) ([]audit.Cost, error) {
	return report(ctx, l, "cost", q, appliedAt, `SELECT rule, model, sum(calls), sum(input), sum(output), sum(dollars), sum(facts)
		FROM (
			SELECT rule, model, toUInt64(0) AS calls, toUInt64(0) AS input, toUInt64(0) AS output, toFloat64(0) AS dollars,
				toUInt64(nth = 1 AND changes AND kind != 'delete') AS facts
			FROM (
				SELECT rule, toString(llm_model) AS model, kind, fact_id != '' AND kind != 'noop' AS changes,
					row_number() OVER (PARTITION BY scope, fact_id, changes ORDER BY sequence DESC, idx DESC) AS nth
				FROM (SELECT rule, llm_model, kind, scope, fact_id, sequence, idx FROM audit WHERE SPAN LIMIT 1 BY `+key+`))
			UNION ALL
			SELECT rule, model, calls, input, output, dollars, toUInt64(0)
			FROM (SELECT rule, spent_model, spent_calls, spent_input, spent_output, spent_dollars
				FROM (SELECT *, committed_at AS applied_at FROM effects) WHERE SPAN AND notEmpty(spent_model) LIMIT 1 BY project, scope, revision)
			ARRAY JOIN spent_model AS model, spent_calls AS calls, spent_input AS input, spent_output AS output, spent_dollars AS dollars)
		GROUP BY rule, model ORDER BY rule, model`,
		func(rows driver.Rows) (c audit.Cost, err error) {
			return c, rows.Scan(&c.Rule, &c.Model, &c.Calls, &c.InputTokens, &c.OutputTokens, &c.Dollars, &c.Facts)
		})
}

// Safety implements [audit.Reports].
func (l *Log) Safety(ctx context.Context, q audit.ReportQuery) ([]audit.Safety, error) {
	return report(ctx, l, "safety", q, appliedAt, `SELECT toString(reason) AS why, rule, toString(rule_id) AS mark, count() AS n
		FROM (SELECT reason, rule, rule_id FROM audit WHERE SPAN AND reason IN ('safety', 'sensitive') LIMIT 1 BY `+key+`)
		GROUP BY why, rule, mark ORDER BY why, rule, mark`,
		func(rows driver.Rows) (s audit.Safety, err error) {
			var why string
			err = rows.Scan(&why, &s.Rule, &s.RuleID, &s.Drops)
			s.Reason = events.Reason(why)
			return s, err
		})
}

// Feedback implements [audit.Reports].
func (l *Log) Feedback(ctx context.Context, q audit.ReportQuery) ([]audit.Feedback, error) {
	return report(ctx, l, "feedback", q, appliedAt, `SELECT fact_id, toString(rule_id) AS rated, count() AS n
		FROM (SELECT fact_id, rule_id FROM audit WHERE SPAN AND reason = 'rated' LIMIT 1 BY `+key+`)
		GROUP BY fact_id, rated ORDER BY fact_id, rated`,
		func(rows driver.Rows) (f audit.Feedback, err error) {
			var rated string
			err = rows.Scan(&f.FactID, &rated, &f.Ratings)
			f.Rating = audit.RatingOf(rated)
			return f, err
		})
}
