package client

import (
	"context"
	"net/http"

	"palimpsest/pkg/api"
)

// Undo takes chosen deltas back, or, with DryRun, tells what it would change. The
// answer's CorrelationID is the request that undoes the undo.
func (c *Client) Undo(ctx context.Context, in api.Undo) (api.Written, error) {
	var out api.Written
	return out, c.call(ctx, request{method: http.MethodPost, path: "/v1/undo", body: in}, &out)
}

// Quarantine withdraws the facts that rest on untrusted messages alone; no fact is made
// of them until Trust is called with the answer's CorrelationID.
func (c *Client) Quarantine(ctx context.Context, in api.Quarantine) (api.Written, error) {
	var out api.Written
	return out, c.call(ctx, request{method: http.MethodPost, path: "/v1/quarantine", body: in}, &out)
}

// Trust ends a quarantine, by the correlation id of the request that began it.
func (c *Client) Trust(ctx context.Context, id string) (api.Written, error) {
	id, err := segment(id)
	var out api.Written
	return out, c.call(ctx, request{method: http.MethodPost, path: "/v1/quarantine/" + id + "/release", err: err}, &out)
}
