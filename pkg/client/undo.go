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
