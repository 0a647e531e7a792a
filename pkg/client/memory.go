package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"palimpsest/pkg/api"
	"palimpsest/pkg/scope"
)

// Record records what was said. With a key, the same call twice is one.
func (c *Client) Record(ctx context.Context, r api.Record, key string) (api.Written, error) {
	var out api.Written
	return out, c.call(ctx, request{method: http.MethodPost, path: "/v1/episodes", header: idempotent(key), body: r}, &out)
}

func idempotent(key string) http.Header {
	if key == "" {
		return nil
	}
	return http.Header{"Idempotency-Key": {key}}
}

// WriteState returns what the write with that read-your-writes token has come to.
func (c *Client) WriteState(ctx context.Context, at string) (api.Written, error) {
	at, err := segment(at)
	var out api.Written
	return out, c.call(ctx, request{method: http.MethodGet, path: "/v1/writes/" + at, err: err}, &out)
}

// ListEpisodes narrows a list of episodes.
type ListEpisodes struct {
	Limit  int // 1 to 1000; 20 if 0
	Cursor string
	// After and Before bound the timestamps, both exclusive; zero is no bound.
	After, Before time.Time
	// At is the read-your-writes token of a write that must be visible.
	At string
	Narrow
}

// Narrow keeps some of the rows of a list.
type Narrow struct {
	// Filters is as in [api.Search]; nil keeps all.
	Filters json.RawMessage
	// Entity keeps what concerns the entity of that name or alias.
	Entity string
	// EpisodeWindow keeps episodes of that time before now, as in 30d or 12h.
	EpisodeWindow string
}

func (n Narrow) add(query url.Values) url.Values {
	for name, value := range map[string]string{"filters": string(n.Filters), "entity": n.Entity, "episode_window": n.EpisodeWindow} {
		if value != "" {
			query.Set(name, value)
		}
	}
	return query
}

// Recent returns episodes, newest first.
func (c *Client) Recent(ctx context.Context, sel scope.Selector, l ListEpisodes) (api.EpisodePage, error) {
	query := written(l.add(page(selector(sel), l.Limit, l.Cursor)), l.At)
	query = instant(query, "after", l.After)
	query = instant(query, "before", l.Before)
	var out api.EpisodePage
	return out, c.call(ctx, request{method: http.MethodGet, path: "/v1/episodes", query: query}, &out)
}

func page(query url.Values, limit int, cursor string) url.Values {
	if limit > 0 {
		query.Set("limit", strconv.Itoa(limit))
	}
	if cursor != "" {
		query.Set("cursor", cursor)
	}
	return query
}

func written(query url.Values, at string) url.Values {
	if at != "" {
		query.Set("at", at)
	}
	return query
}

// EndSession ends the session of s.
func (c *Client) EndSession(ctx context.Context, s api.Scope, cause string) (api.Written, error) {
	id, err := segment(s.Session)
	r := request{
		method: http.MethodPost, path: "/v1/sessions/" + id + "/end",
		body: api.EndSession{Scope: s, Cause: cause}, err: err,
	}
	var out api.Written
	return out, c.call(ctx, r, &out)
}

// Search finds facts and episodes by text.
func (c *Client) Search(ctx context.Context, q api.Search) (api.Found, error) {
	var out api.Found
	return out, c.call(ctx, request{method: http.MethodPost, path: "/v1/search", body: q}, &out)
}

// Assemble assembles what is known for a system prompt. It is empty where nothing is.
func (c *Client) Assemble(ctx context.Context, q api.ContextQuery) (api.Context, error) {
	var out api.Context
	return out, c.call(ctx, request{method: http.MethodPost, path: "/v1/context", body: q}, &out)
}

// ListFacts narrows a list of facts.
type ListFacts struct {
	Limit  int
	Cursor string
	// Closed lists closed and archived facts too.
	Closed bool
	// ValidAt lists what was true then, in the version of then; zero means now.
	ValidAt time.Time
	// AsOf lists what was known then; zero means now.
	AsOf    time.Time
	Kinds   []string
	Filters json.RawMessage
	Entity  string
	// At is the read-your-writes token of a write that must be visible.
	At string
}

// Facts lists what is known, newest first.
func (c *Client) Facts(ctx context.Context, sel scope.Selector, l ListFacts) (api.FactPage, error) {
	query := written(Narrow{Filters: l.Filters, Entity: l.Entity}.add(page(selector(sel), l.Limit, l.Cursor)), l.At)
	query = instant(query, "valid_at", l.ValidAt)
	query = instant(query, "as_of", l.AsOf)
	if len(l.Kinds) > 0 {
		query.Set("kinds", strings.Join(l.Kinds, ","))
	}
	if l.Closed {
		query.Set("closed", "true")
	}
	var out api.FactPage
	return out, c.call(ctx, request{method: http.MethodGet, path: "/v1/facts", query: query}, &out)
}

// WeakFacts lists what is about to be forgotten, newest first.
func (c *Client) WeakFacts(ctx context.Context, sel scope.Selector, limit int, cursor string) (api.WeakPage, error) {
	var out api.WeakPage
	return out, c.call(ctx, request{method: http.MethodGet, path: "/v1/facts/weak", query: page(selector(sel), limit, cursor)}, &out)
}

// Fact returns one fact; revision 0 is the newest.
func (c *Client) Fact(ctx context.Context, id string, revision uint64) (api.Fact, error) {
	query := url.Values{}
	if revision > 0 {
		query.Set("revision", strconv.FormatUint(revision, 10))
	}
	r := onFact(http.MethodGet, id, "")
	r.query = query
	var out api.Fact
	return out, c.call(ctx, r, &out)
}

// FactAsOf returns one fact as it was known at an instant.
func (c *Client) FactAsOf(ctx context.Context, id string, at time.Time) (api.Fact, error) {
	r := onFact(http.MethodGet, id, "")
	r.query = instant(url.Values{}, "as_of", at)
	var out api.Fact
	return out, c.call(ctx, r, &out)
}

// onFact is a request on one fact, or on what verb says of it.
func onFact(method, id, verb string) request {
	id, err := segment(id)
	return request{method: method, path: "/v1/facts/" + id + verb, err: err}
}

// History returns all that happened to a fact, oldest first.
func (c *Client) History(ctx context.Context, id string) (api.History, error) {
	return c.HistoryWhere(ctx, id, nil)
}

// HistoryWhere returns what happened to a fact, oldest first, as far as it matches
// a filter on the fields of audit records; nil keeps all.
func (c *Client) HistoryWhere(ctx context.Context, id string, filters json.RawMessage) (api.History, error) {
	r := onFact(http.MethodGet, id, "/history")
	if len(filters) > 0 {
		r.query = url.Values{"filters": {string(filters)}}
	}
	var out api.History
	return out, c.call(ctx, r, &out)
}

// Explain returns why a fact is known.
func (c *Client) Explain(ctx context.Context, id string) (api.Explanation, error) {
	var out api.Explanation
	return out, c.call(ctx, onFact(http.MethodGet, id, "/explain"), &out)
}

// Remember states a fact.
func (c *Client) Remember(ctx context.Context, r api.Remember, key string) (api.Written, error) {
	var out api.Written
	return out, c.call(ctx, request{method: http.MethodPost, path: "/v1/facts", header: idempotent(key), body: r}, &out)
}

// Correct gives a fact a new version. A revision above 0 must be the newest.
func (c *Client) Correct(ctx context.Context, id string, revision uint64, body api.Correct) (api.Written, error) {
	return c.command(ctx, onFact(http.MethodPost, id, "/correct"), revision, body)
}

// Confirm makes a fact certain: it no longer decays.
func (c *Client) Confirm(ctx context.Context, id string, revision uint64) (api.Written, error) {
	return c.command(ctx, onFact(http.MethodPost, id, "/confirm"), revision, nil)
}

// Restore brings a closed fact back.
func (c *Client) Restore(ctx context.Context, id string, revision uint64) (api.Written, error) {
	return c.command(ctx, onFact(http.MethodPost, id, "/restore"), revision, nil)
}

// Delete closes a fact; its history stays.
func (c *Client) Delete(ctx context.Context, id string, revision uint64) (api.Written, error) {
	return c.command(ctx, onFact(http.MethodDelete, id, ""), revision, nil)
}

// DeleteScope closes the facts that sel matches; it must name a user, an agent or a
// session. A delete of a session closes the facts without another source. Closed in
// the answer is their count. With a key, the same call twice is one.
func (c *Client) DeleteScope(ctx context.Context, sel scope.Selector, key string) (api.Written, error) {
	var out api.Written
	r := request{method: http.MethodDelete, path: "/v1/scopes", query: selector(sel), header: idempotent(key)}
	return out, c.call(ctx, r, &out)
}

// Erase asks for the removal of everything of a user, and returns the id of the
// erasure. The server is away while it erases.
func (c *Client) Erase(ctx context.Context, user string) (id string, err error) {
	var out api.Written
	query := url.Values{"user": {user}, "erase": {"true"}}
	err = c.call(ctx, request{method: http.MethodDelete, path: "/v1/scopes", query: query}, &out)
	return out.CorrelationID, err
}

// Reset erases every user of the project and closes what names none.
func (c *Client) Reset(ctx context.Context, key string) (api.Written, error) {
	var out api.Written
	return out, c.call(ctx, request{method: http.MethodPost, path: "/v1/reset", header: idempotent(key)}, &out)
}

// Erasure returns how far an erasure is, and its receipt.
func (c *Client) Erasure(ctx context.Context, id string) (api.Erasure, error) {
	id, err := segment(id)
	var out api.Erasure
	return out, c.call(ctx, request{method: http.MethodGet, path: "/v1/erasures/" + id, err: err}, &out)
}

func (c *Client) command(ctx context.Context, r request, revision uint64, body any) (api.Written, error) {
	r.body = body
	if revision > 0 {
		r.header = http.Header{"If-Match": {strconv.Quote(strconv.FormatUint(revision, 10))}}
	}
	var out api.Written
	return out, c.call(ctx, r, &out)
}
