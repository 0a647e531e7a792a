package client

import (
	"context"
	"net/http"

	"palimpsest/pkg/api"
)

// Rules lists the consolidation rules.
func (c *Client) Rules(ctx context.Context) (api.RuleList, error) {
	var out api.RuleList
	return out, c.call(ctx, request{method: http.MethodGet, path: "/v1/rules", shared: true}, &out)
}

// RunRule runs a rule in a scope now, on at most 200 episodes.
func (c *Client) RunRule(ctx context.Context, id string, in api.RunRule) (api.RuleRun, error) {
	id, err := segment(id)
	var out api.RuleRun
	return out, c.call(ctx, request{method: http.MethodPost, path: "/v1/rules/" + id + "/run", body: in, err: err}, &out)
}

// RehearseRule returns what a run would decide, and applies nothing.
func (c *Client) RehearseRule(ctx context.Context, id string, in api.RunRule) (api.Rehearsal, error) {
	id, err := segment(id)
	var out api.Rehearsal
	return out, c.call(ctx, request{method: http.MethodPost, path: "/v1/rules/" + id + "/dry-run", body: in, err: err}, &out)
}
