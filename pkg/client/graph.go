package client

import (
	"context"
	"net/http"
	"strconv"

	"palimpsest/pkg/api"
	"palimpsest/pkg/scope"
)

// Entities lists the people, places and things that facts mention, by name.
func (c *Client) Entities(ctx context.Context, sel scope.Selector, limit int, cursor string) (api.EntityPage, error) {
	var out api.EntityPage
	return out, c.call(ctx, request{method: http.MethodGet, path: "/v1/entities", query: page(selector(sel), limit, cursor)}, &out)
}

// Entity returns what is known of the entity of a name or alias.
func (c *Client) Entity(ctx context.Context, sel scope.Selector, name string) (api.EntityInfo, error) {
	name, err := segment(name)
	var out api.EntityInfo
	return out, c.call(ctx, request{method: http.MethodGet, path: "/v1/entities/" + name, query: selector(sel), err: err}, &out)
}

// Relations follows the relations of an entity up to a depth; 0 means its own.
func (c *Client) Relations(ctx context.Context, sel scope.Selector, name string, depth int) (api.Relations, error) {
	name, err := segment(name)
	query := selector(sel)
	if depth > 0 {
		query.Set("depth", strconv.Itoa(depth))
	}
	var out api.Relations
	return out, c.call(ctx, request{method: http.MethodGet, path: "/v1/entities/" + name + "/relations", query: query, err: err}, &out)
}

// Timeline tells what was true of an entity, oldest first; limit 0 means the newest 100
// versions of facts.
func (c *Client) Timeline(ctx context.Context, sel scope.Selector, name string, limit int) (api.Timeline, error) {
	name, err := segment(name)
	var out api.Timeline
	return out, c.call(ctx, request{method: http.MethodGet, path: "/v1/entities/" + name + "/timeline", query: page(selector(sel), limit, ""), err: err}, &out)
}

// Stats counts facts, entities and relations.
func (c *Client) Stats(ctx context.Context, sel scope.Selector) (api.Stats, error) {
	var out api.Stats
	return out, c.call(ctx, request{method: http.MethodGet, path: "/v1/stats", query: selector(sel)}, &out)
}
