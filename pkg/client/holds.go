package client

import (
	"context"
	"net/http"

	"palimpsest/pkg/api"
	"palimpsest/pkg/scope"
)

// Holds lists what waits before it changes what is known, oldest first.
func (c *Client) Holds(ctx context.Context, sel scope.Selector, limit int, cursor string) (api.HoldPage, error) {
	var out api.HoldPage
	return out, c.call(ctx, request{method: http.MethodGet, path: "/v1/holds", query: page(selector(sel), limit, cursor)}, &out)
}

// Release decides on a held candidate at once.
func (c *Client) Release(ctx context.Context, id string) (api.Written, error) {
	id, err := segment(id)
	var out api.Written
	return out, c.call(ctx, request{method: http.MethodPost, path: "/v1/holds/" + id + "/release", err: err}, &out)
}

// Dismiss gives a held candidate up: it changes nothing.
func (c *Client) Dismiss(ctx context.Context, id string) (api.Written, error) {
	id, err := segment(id)
	var out api.Written
	return out, c.call(ctx, request{method: http.MethodPost, path: "/v1/holds/" + id + "/dismiss", err: err}, &out)
}
