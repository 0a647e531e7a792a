package query

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"palimpsest/internal/audit"
	"palimpsest/internal/lex"
	"palimpsest/pkg/api"
)

func (s *Service) reportRoutes(a huma.API) {
	op := func(id, path, summary string) huma.Operation {
		return huma.Operation{OperationID: id, Method: http.MethodGet, Path: path, Summary: summary, Tags: []string{"reports"}}
	}
	register(s, a, op("list-reports", "/v1/reports", "List the reports"), s.reportNames)
	one := op("report", "/v1/reports/{name}", "Count what memory did")
	one.Responses = map[string]*huma.Response{"200": {
		Description: "The report.",
		Content: map[string]*huma.MediaType{
			"application/json": {Schema: a.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[api.Report](), true, "Report")},
			csvType:            {Schema: &huma.Schema{Type: huma.TypeString}},
		},
	}}
	register(s, a, one, s.report)
}

// csvType is the media type of a table as text.
const csvType = "text/csv; charset=utf-8"

type reportInput struct {
	SelectorParams
	Name   string `path:"name" doc:"One of those that GET /v1/reports lists."`
	From   string `query:"from" doc:"Only deltas that were applied at this time or later: RFC 3339 or YYYY-MM-DD."`
	To     string `query:"to" doc:"Only what was applied before: RFC 3339 or YYYY-MM-DD."`
	Limit  int    `query:"limit" doc:"Rows at most: 1 to 10000; 1000 unless given." minimum:"0" maximum:"10000"`
	Format string `query:"format" enum:"json,csv" default:"json"`
}

type reportNames struct{ Body api.ReportNames }

func (s *Service) reportNames(context.Context, *struct{}) (*reportNames, error) {
	out := &reportNames{}
	for _, r := range reports {
		out.Body.Reports = append(out.Body.Reports, api.ReportName{Name: r.name, About: r.about})
	}
	return out, nil
}

func (s *Service) report(ctx context.Context, in *reportInput) (*huma.StreamResponse, error) {
	r, err := reportOf(in.Name)
	if err != nil {
		return nil, err
	}
	q := audit.ReportQuery{Limit: in.Limit}
	if q.Limit == 0 {
		q.Limit = 1000
	}
	if q.Selector, err = s.factSelector(in.SelectorParams); err != nil {
		return nil, err
	}
	if q.From, err = instant("from", in.From); err != nil {
		return nil, err
	}
	if q.To, err = instant("to", in.To); err != nil {
		return nil, err
	}
	rows, err := r.rows(ctx, s.deps.Log, q)
	if err != nil {
		return nil, err
	}
	if in.Format == "csv" {
		return csvOf(r.columns, rows), nil
	}
	out := api.Report{Name: r.name, From: q.From, To: q.To, Columns: r.columns, Rows: make([]map[string]any, 0, len(rows))}
	for _, cells := range rows {
		row := make(map[string]any, len(cells))
		for i, column := range r.columns {
			row[column] = cells[i]
		}
		out.Rows = append(out.Rows, row)
	}
	return &huma.StreamResponse{Body: func(c huma.Context) {
		c.SetHeader("Content-Type", "application/json")
		_ = json.NewEncoder(c.BodyWriter()).Encode(out)
	}}, nil
}

func reportOf(name string) (report, error) {
	names := make([]string, len(reports))
	for i, r := range reports {
		if r.name == name {
			return r, nil
		}
		names[i] = r.name
	}
	return report{}, api.NewProblem(http.StatusNotFound, api.CodeNotFound, "name", "there is no report %q; there are %s", lex.Clip(name), strings.Join(names, ", "))
}

// csvOf is a table as RFC 4180 has it, with a line of column names.
func csvOf(columns []string, rows [][]any) *huma.StreamResponse {
	return &huma.StreamResponse{Body: func(c huma.Context) {
		c.SetHeader("Content-Type", csvType)
		w := csv.NewWriter(c.BodyWriter())
		_ = w.Write(columns)
		for _, cells := range rows {
			text := make([]string, len(cells))
			for i, cell := range cells {
				if cell != nil {
					text[i] = fmt.Sprint(cell)
				}
			}
			_ = w.Write(text)
		}
		w.Flush()
	}}
}

// report is one of the tables.
type report struct {
	name, about string
	columns     []string
	rows        func(context.Context, audit.Reports, audit.ReportQuery) ([][]any, error)
}

var reports = []report{
	{
		"deltas", "Deltas per day, rule and kind.", []string{"day", "rule", "kind", "deltas"},
		tabled(audit.Reports.DailyDeltas, func(d audit.DailyDeltas) []any {
			return []any{d.Day.Format(time.DateOnly), d.Rule, d.Kind, d.Deltas}
		}),
	}, {
		"noops", "Per rule, the share of deltas that changed nothing.", []string{"rule", "deltas", "noops", "noop_share"},
		tabled(audit.Reports.Noops, func(n audit.Noops) []any {
			return []any{n.Rule, n.Deltas, n.Noops, ratio(n.Noops, n.Deltas)}
		}),
	}, {
		"churn", "Facts that changed more than once; flips are returns to an earlier text.",
		[]string{"user", "agent", "session", "fact_id", "changes", "flips"},
		tabled(audit.Reports.Churn, func(c audit.Churn) []any {
			return []any{c.Scope.User, c.Scope.Agent, c.Scope.Session, c.FactID, c.Changes, c.Flips}
		}),
	}, {
		"yield", "Per rule and extractor, what came of episodes.",
		[]string{"rule", "extractor", "episodes", "candidates", "adds", "candidates_per_episode", "adds_per_candidate"},
		tabled(audit.Reports.Yield, func(y audit.Yield) []any {
			return []any{y.Rule, y.Extractor, y.Episodes, y.Candidates, y.Adds, ratio(y.Candidates, y.Episodes), ratio(y.Adds, y.Candidates)}
		}),
	}, {
		"latency", "Per rule, milliseconds from said to known; percentiles are nearest ranks.",
		[]string{"rule", "facts", "p50_ms", "p95_ms", "p99_ms"},
		tabled(audit.Reports.Latency, func(l audit.Latency) []any {
			return []any{l.Rule, l.Facts, l.P50.Milliseconds(), l.P95.Milliseconds(), l.P99.Milliseconds()}
		}),
	}, {
		"cost", "Per rule and model, calls, tokens and dollars, and that per fact that is kept.",
		[]string{"rule", "model", "facts", "calls", "input_tokens", "output_tokens", "dollars", "calls_per_fact", "tokens_per_fact", "dollars_per_fact"},
		tabled(audit.Reports.Cost, func(c audit.Cost) []any {
			return []any{
				c.Rule, c.Model, c.Facts, c.Calls, c.InputTokens, c.OutputTokens, c.Dollars,
				ratio(c.Calls, c.Facts), ratio(c.InputTokens+c.OutputTokens, c.Facts), ratio(c.Dollars, c.Facts),
			}
		}),
	}, {
		"safety", "Statements that the write policy dropped, by reason and by the marker or pattern that fired.",
		[]string{"reason", "rule", "rule_id", "drops"},
		tabled(audit.Reports.Safety, func(s audit.Safety) []any { return []any{s.Reason, s.Rule, s.RuleID, s.Drops} }),
	}, {
		"feedback", "Ratings by fact and value; those of answers name no fact.", []string{"fact_id", "rating", "ratings"},
		tabled(audit.Reports.Feedback, func(f audit.Feedback) []any { return []any{f.FactID, f.Rating, f.Ratings} }),
	},
}

// tabled asks for a report and lays out its rows.
func tabled[T any](ask func(audit.Reports, context.Context, audit.ReportQuery) ([]T, error), cells func(T) []any) func(context.Context, audit.Reports, audit.ReportQuery) ([][]any, error) {
	return func(ctx context.Context, log audit.Reports, q audit.ReportQuery) ([][]any, error) {
		all, err := ask(log, ctx, q)
		if err != nil {
			return nil, err
		}
		rows := make([][]any, len(all))
		for i, v := range all {
			rows[i] = cells(v)
		}
		return rows, nil
	}
}

// ratio is nil, for null, where there is nothing to divide by.
func ratio[N uint64 | float64](n N, of uint64) any {
	if of == 0 {
		return nil
	}
	return float64(n) / float64(of)
}
