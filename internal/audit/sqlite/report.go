package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"time"

	"palimpsest/internal/audit"
	"palimpsest/pkg/scope"
)

// span is the condition that a report's query puts on records or tallies.
func span(q audit.ReportQuery) (where string, args []any) {
	parts, args := selected(q.Selector)
	if !q.From.IsZero() {
		parts, args = append(parts, "applied_at >= ?"), append(args, q.From.UnixMicro())
	}
	if !q.To.IsZero() {
		parts, args = append(parts, "applied_at < ?"), append(args, q.To.UnixMicro())
	}
	return strings.Join(parts, " AND "), args
}

// selected is the condition that a selector puts on them.
func selected(sel scope.Selector) (where []string, args []any) {
	where, args = []string{"project = ?"}, []any{sel.Project}
	for _, l := range []struct {
		column string
		id     *string
	}{{"user_id", sel.User}, {"agent_id", sel.Agent}, {"session_id", sel.Session}} {
		if l.id != nil {
			where, args = append(where, l.column+" = ?"), append(args, *l.id)
		}
	}
	return where, args
}

// report runs a query in which each SPAN stands for the condition of q and whose last
// parameter is its limit.
func report[T any](ctx context.Context, l *Log, name string, q audit.ReportQuery, query string, scan func(*sql.Rows) (T, error)) (all []T, err error) {
	if err := q.Validate(); err != nil {
		return nil, err
	}
	if err := l.enter(); err != nil {
		return nil, err
	}
	defer l.leave()
	defer func() {
		if err != nil {
			err = fmt.Errorf("audit sqlite: report %s: %w", name, err)
		}
	}()
	if err := l.measure(ctx); err != nil {
		return nil, err
	}
	where, once := span(q)
	args := slices.Repeat(once, strings.Count(query, "SPAN"))
	rows, err := l.file.Read.QueryContext(ctx, strings.ReplaceAll(query, "SPAN", where)+" LIMIT ?", append(args, q.Limit)...)
	if err != nil {
		return nil, err
	}
	defer rows.Close() //nolint:errcheck // rows.Err tells
	for rows.Next() {
		v, err := scan(rows)
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, rows.Err()
}

// DailyDeltas implements [audit.Reports].
func (l *Log) DailyDeltas(ctx context.Context, q audit.ReportQuery) ([]audit.DailyDeltas, error) {
	return report(ctx, l, "daily deltas", q, `SELECT date(applied_at / 1000000, 'unixepoch') AS day, rule, kind, count(*)
		FROM records WHERE SPAN GROUP BY day, rule, kind ORDER BY day, rule, kind`,
		func(rows *sql.Rows) (d audit.DailyDeltas, err error) {
			var day string
			if err := rows.Scan(&day, &d.Rule, &d.Kind, &d.Deltas); err != nil {
				return d, err
			}
			d.Day, err = time.Parse(time.DateOnly, day)
			return d, err
		})
}

// Noops implements [audit.Reports].
func (l *Log) Noops(ctx context.Context, q audit.ReportQuery) ([]audit.Noops, error) {
	return report(ctx, l, "noops", q, `SELECT rule, count(*), count(*) FILTER (WHERE kind = 'noop')
		FROM records WHERE SPAN GROUP BY rule ORDER BY rule`,
		func(rows *sql.Rows) (n audit.Noops, err error) {
			return n, rows.Scan(&n.Rule, &n.Deltas, &n.Noops)
		})
}

// Churn implements [audit.Reports].
func (l *Log) Churn(ctx context.Context, q audit.ReportQuery) ([]audit.Churn, error) {
	return report(ctx, l, "churn", q, `WITH changes AS (
			SELECT project, scope, fact_id, value, sequence, idx FROM records
			WHERE SPAN AND fact_id <> '' AND kind IN ('add', 'update', 'delete')),
		texts AS (
			SELECT scope, fact_id,
				row_number() OVER (PARTITION BY scope, fact_id, value ORDER BY sequence, idx) AS nth,
				value <> lag(value) OVER (PARTITION BY scope, fact_id ORDER BY sequence, idx) AS other
			FROM changes WHERE value <> ''),
		flips AS (SELECT scope, fact_id, count(*) AS n FROM texts WHERE nth > 1 AND other GROUP BY scope, fact_id)
		SELECT c.project, c.scope, c.fact_id, count(*) AS changes, coalesce(max(f.n), 0) AS flips
		FROM changes c LEFT JOIN flips f ON f.scope = c.scope AND f.fact_id = c.fact_id
		GROUP BY c.project, c.scope, c.fact_id HAVING count(*) > 1
		ORDER BY flips DESC, changes DESC, c.scope, c.fact_id`,
		func(rows *sql.Rows) (c audit.Churn, err error) {
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
	return report(ctx, l, "yield", q, `SELECT rule, extractor, sum(episodes), sum(candidates), sum(adds)
		FROM tallies WHERE SPAN GROUP BY rule, extractor HAVING sum(episodes) + sum(candidates) > 0 ORDER BY rule, extractor`,
		func(rows *sql.Rows) (y audit.Yield, err error) {
			return y, rows.Scan(&y.Rule, &y.Extractor, &y.Episodes, &y.Candidates, &y.Adds)
		})
}

// Latency implements [audit.Reports]. The p-th percentile of n is the least at
// whose place, from 1, as many per cent are reached.
func (l *Log) Latency(ctx context.Context, q audit.ReportQuery) ([]audit.Latency, error) {
	return report(ctx, l, "latency", q, `WITH ranked AS (
			SELECT rule, known_ms, row_number() OVER (PARTITION BY rule ORDER BY known_ms) * 100 AS place,
				count(*) OVER (PARTITION BY rule) AS n
			FROM records WHERE SPAN AND known_ms IS NOT NULL)
		SELECT rule, max(n), min(known_ms) FILTER (WHERE place >= 50 * n), min(known_ms) FILTER (WHERE place >= 95 * n),
			min(known_ms) FILTER (WHERE place >= 99 * n)
		FROM ranked GROUP BY rule ORDER BY rule`,
		func(rows *sql.Rows) (d audit.Latency, err error) {
			var ms [3]int64
			if err := rows.Scan(&d.Rule, &d.Facts, &ms[0], &ms[1], &ms[2]); err != nil {
				return d, err
			}
			d.P50, d.P95, d.P99 = milliseconds(ms[0]), milliseconds(ms[1]), milliseconds(ms[2])
			return d, nil
		})
}

func milliseconds(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

// Cost implements [audit.Reports].
func (l *Log) Cost(ctx context.Context, q audit.ReportQuery) ([]audit.Cost, error) {
	return report(ctx, l, "cost", q, `WITH changes AS (
			SELECT rule, model, kind, fact_id, row_number() OVER (
				PARTITION BY scope, fact_id, fact_id <> '' AND kind IN ('add', 'update', 'delete')
				ORDER BY sequence DESC, idx DESC) AS nth
			FROM records WHERE SPAN),
		rows AS (
			SELECT rule, model, 0 AS calls, 0 AS input, 0 AS output, 0.0 AS dollars,
				nth = 1 AND fact_id <> '' AND kind IN ('add', 'update') AS fact FROM changes
			UNION ALL
			SELECT rule, s.value ->> 'model', s.value ->> 'calls', s.value ->> 'input_tokens', s.value ->> 'output_tokens',
				coalesce(s.value ->> 'dollars', 0.0), 0
			FROM tallies, json_each(tallies.spent) s WHERE SPAN)
		SELECT rule, model, sum(calls), sum(input), sum(output), sum(dollars), sum(fact)
		FROM rows GROUP BY rule, model ORDER BY rule, model`,
		func(rows *sql.Rows) (c audit.Cost, err error) {
			return c, rows.Scan(&c.Rule, &c.Model, &c.Calls, &c.InputTokens, &c.OutputTokens, &c.Dollars, &c.Facts)
		})
}

// Safety implements [audit.Reports].
func (l *Log) Safety(ctx context.Context, q audit.ReportQuery) ([]audit.Safety, error) {
	return report(ctx, l, "safety", q, `SELECT reason, rule, rule_id, count(*) FROM records
		WHERE SPAN AND reason IN ('safety', 'sensitive') GROUP BY reason, rule, rule_id ORDER BY reason, rule, rule_id`,
		func(rows *sql.Rows) (s audit.Safety, err error) {
			return s, rows.Scan(&s.Reason, &s.Rule, &s.RuleID, &s.Drops)
		})
}

// Feedback implements [audit.Reports].
func (l *Log) Feedback(ctx context.Context, q audit.ReportQuery) ([]audit.Feedback, error) {
	return report(ctx, l, "feedback", q, `SELECT fact_id, rule_id, count(*) FROM records
		WHERE SPAN AND reason = 'rated' GROUP BY fact_id, rule_id ORDER BY fact_id, rule_id`,
		func(rows *sql.Rows) (f audit.Feedback, err error) {
			var rated string
			err = rows.Scan(&f.FactID, &rated, &f.Ratings)
			f.Rating = audit.RatingOf(rated)
			return f, err
		})
}
