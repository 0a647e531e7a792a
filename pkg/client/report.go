package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"palimpsest/pkg/api"
	"palimpsest/pkg/scope"
)

// ReportRange narrows a report. An empty member narrows nothing.
type ReportRange struct {
	From, To time.Time // inclusive, exclusive
	Limit    int       // rows, 1 to 10000; 1000 unless given
}

// Reports lists the reports that there are.
func (c *Client) Reports(ctx context.Context) (api.ReportNames, error) {
	var out api.ReportNames
	return out, c.call(ctx, request{method: http.MethodGet, path: "/v1/reports", shared: true}, &out)
}

// Report counts what was applied within sel and r.
func (c *Client) Report(ctx context.Context, name string, sel scope.Selector, r ReportRange) (api.Report, error) {
	name, err := segment(name)
	query := instants(selector(sel), r.From, r.To)
	if r.Limit > 0 {
		query.Set("limit", strconv.Itoa(r.Limit))
	}
	var out api.Report
	return out, c.call(ctx, request{method: http.MethodGet, path: "/v1/reports/" + name, query: query, err: err}, &out)
}

// instants adds the bounds that are given.
func instants(query url.Values, from, to time.Time) url.Values {
	return instant(instant(query, "from", from), "to", to)
}

// instant adds a time unless it is zero.
func instant(query url.Values, name string, at time.Time) url.Values {
	if !at.IsZero() {
		query.Set(name, at.Format(time.RFC3339Nano))
	}
	return query
}
