package client

import (
	"context"
	"net/http"

	"palimpsest/pkg/api"
)

// Feedback rates a fact or an answer. It changes no fact.
func (c *Client) Feedback(ctx context.Context, in api.Feedback) (api.Written, error) {
	var out api.Written
	return out, c.call(ctx, request{method: http.MethodPost, path: "/v1/feedback", body: in}, &out)
}
