package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"

	"palimpsest/pkg/api"
	"palimpsest/pkg/scope"
)

// Client is a connection to one server. The zero value is not usable; see [New].
// It is safe for concurrent use.
type Client struct {
	base    *url.URL
	http    *http.Client
	project string
	key     string
}

// Option changes a client.
type Option func(*Client)

// HTTP uses c in place of a client that keeps up to [idleConnections] connections.
func HTTP(c *http.Client) Option { return func(into *Client) { into.http = c } }

// idleConnections is how many connections are kept for the next calls. The default
// client of net/http keeps two: more goroutines would connect for nearly every call.
const idleConnections = 64

func newHTTP(local bool) *http.Client {
	transport, ok := http.DefaultTransport.(*http.Transport)
	if !ok { // the program has put another in its place
		return http.DefaultClient
	}
	transport = transport.Clone()
	transport.DisableCompression = local // there is no wire to save
	transport.MaxIdleConnsPerHost = idleConnections
	return &http.Client{Transport: transport}
}

// Project names the tenant that requests concern.
func Project(name string) Option { return func(into *Client) { into.project = name } }

// APIKey authenticates requests; an empty one is not sent. Errors and logs of the
// client never hold it.
func APIKey(key string) Option { return func(into *Client) { into.key = key } }

// New returns a client of the server at base, such as http://127.0.0.1:8080.
func New(base string, options ...Option) (*Client, error) {
	u, err := url.Parse(base)
	if err != nil {
		return nil, fmt.Errorf("parse server address: %w", err)
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("parse server address: %q is not http://host:port", base)
	}
	c := &Client{base: u}
	for _, o := range options {
		o(c)
	}
	if c.http == nil {
		ip := net.ParseIP(u.Hostname())
		c.http = newHTTP(u.Hostname() == "localhost" || ip != nil && ip.IsLoopback())
	}
	return c, nil
}

// request is one call: its query, headers and body, all optional.
type request struct {
	method, path string
	query        url.Values
	header       http.Header
	body         any
	// shared: the answer concerns all projects, so that none is named.
	shared bool
	// accept is a status of 400 or above whose answer is no problem document.
	accept int
	// err is why there is nothing to send.
	err error
}

// call sends r and decodes the answer into out, which may be nil.
func (c *Client) call(ctx context.Context, r request, out any) error {
	res, err := c.send(ctx, r) //nolint:bodyclose // drain closes it
	if err != nil {
		return err
	}
	defer drain(res.Body)
	if out == nil {
		return nil
	}
	if res.StatusCode == http.StatusNoContent {
		return nil
	}
	if err := json.NewDecoder(res.Body).Decode(out); err != nil {
		return fmt.Errorf("decode answer of %s %s: %w", r.method, r.path, err)
	}
	return nil
}

// drain reads the end of an answer, so that its connection is used again.
func drain(body io.ReadCloser) {
	_, _ = io.CopyN(io.Discard, body, 4<<10)
	_ = body.Close()
}

// send returns an answer below 400, or of the status that r accepts, whose body
// the caller closes.
func (c *Client) send(ctx context.Context, r request) (*http.Response, error) {
	var body io.Reader
	if r.err != nil {
		return nil, fmt.Errorf("%s %s: %w", r.method, r.path, r.err)
	}
	if r.body != nil {
		text, err := json.Marshal(r.body)
		if err != nil {
			return nil, fmt.Errorf("encode request: %w", err)
		}
		body = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, r.method, c.address(r), body)
	if err != nil {
		return nil, err
	}
	for name, values := range r.header {
		req.Header[name] = values
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.key != "" {
		req.Header.Set("Authorization", "Bearer "+c.key)
	}
	res, err := c.http.Do(req)
	if err != nil {
		var failed *url.Error // names the address, query included, once more
		if errors.As(err, &failed) {
			err = failed.Err
		}
		return nil, fmt.Errorf("reach %s: %w", c.base.Host, err)
	}
	if res.StatusCode < http.StatusBadRequest || res.StatusCode == r.accept {
		return res, nil
	}
	defer drain(res.Body)
	return nil, explained(r, res)
}

// explained turns an answer of 400 or above into the problem it carries.
func explained(r request, res *http.Response) error {
	text, _ := io.ReadAll(io.LimitReader(res.Body, 1<<20))
	var p api.Problem
	if json.Unmarshal(text, &p) == nil && p.Code != "" {
		return &p
	}
	const most = 512
	text = bytes.ToValidUTF8(bytes.TrimSpace(text[:min(most, len(text))]), nil)
	return fmt.Errorf("%s %s: %s: %s", r.method, r.path, res.Status, text)
}

// segment is an identifier as one segment of a path. One that means a directory
// is escaped too, or the path would be another by the time it arrives; an empty
// one names nothing.
func segment(id string) (string, error) {
	switch id {
	case "":
		return "", errors.New("the identifier is empty")
	case ".", "..":
		return strings.ReplaceAll(id, ".", "%2E"), nil
	}
	return url.PathEscape(id), nil
}

// address is where r goes.
func (c *Client) address(r request) string {
	query := url.Values{}
	for name, values := range r.query {
		query[name] = values
	}
	if c.project != "" && !r.shared {
		query.Set("project", c.project)
	}
	address := strings.TrimSuffix(c.base.String(), "/") + r.path
	if len(query) > 0 {
		address += "?" + query.Encode()
	}
	return address
}

// selector is a widening read as query parameters; its project is the client's.
// The server refuses one that names no level, unless All is set.
func selector(sel scope.Selector) url.Values {
	out := url.Values{}
	for name, id := range map[string]*string{"user": sel.User, "agent": sel.Agent, "session": sel.Session} {
		if id != nil {
			out.Set(name, *id)
		}
	}
	if sel.All {
		out.Set("all", "true")
	}
	return out
}
