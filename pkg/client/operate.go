package client

import (
	"bufio"
	"context"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"palimpsest/pkg/api"
	"palimpsest/pkg/scope"
)

// maxLine bounds one line of a stream, in bytes.
const maxLine = 16 << 20

// Ledger accounts for every episode; each adds one account per scope.
func (c *Client) Ledger(ctx context.Context, sel scope.Selector, each bool) (api.Ledger, error) {
	query := selector(sel)
	if each {
		query.Set("accounts", "true")
	}
	var out api.Ledger
	return out, c.call(ctx, request{method: http.MethodGet, path: "/v1/ledger", query: query}, &out)
}

// Ready asks how each dependency is. The error of a server that is not ready
// says which dependency fails; the readiness says so, too.
func (c *Client) Ready(ctx context.Context) (api.Readiness, error) {
	var out api.Readiness
	r := request{method: http.MethodGet, path: "/readyz", shared: true, accept: http.StatusServiceUnavailable}
	if err := c.call(ctx, r, &out); err != nil || out.Ready {
		return out, err
	}
	var failing []string
	for name, check := range out.Checks {
		if !check.OK {
			failing = append(failing, name+": "+check.Error)
		}
	}
	slices.Sort(failing)
	return out, fmt.Errorf("not ready: %s", strings.Join(failing, "; "))
}

// Export returns what is known in canonical form, a line at a time; a line is
// valid until the next.
func (c *Client) Export(ctx context.Context, sel scope.Selector, content bool) iter.Seq2[[]byte, error] {
	query := selector(sel)
	if content {
		query.Set("content", "true")
	}
	return c.stream(ctx, "/v1/export", query)
}

// Digest is that of the canonical export of all projects.
func (c *Client) Digest(ctx context.Context, content bool) (api.Digest, error) {
	query := url.Values{}
	if content {
		query.Set("content", "true")
	}
	var out api.Digest
	return out, c.call(ctx, request{method: http.MethodGet, path: "/v1/digest", query: query, shared: true}, &out)
}

func (c *Client) stream(ctx context.Context, path string, query url.Values) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		res, err := c.send(ctx, request{method: http.MethodGet, path: path, query: query})
		if err != nil {
			yield(nil, err)
			return
		}
		defer res.Body.Close() //nolint:errcheck // nothing to do about it
		lines := bufio.NewScanner(res.Body)
		lines.Buffer(make([]byte, 64<<10), maxLine)
		for lines.Scan() {
			if !yield(lines.Bytes(), nil) {
				return
			}
		}
		if err := lines.Err(); err != nil {
			yield(nil, fmt.Errorf("read %s: %w", path, err))
		}
	}
}

// ListLetters narrows a list of dead letters. An empty member matches all.
type ListLetters struct {
	Service, Code, User string
	After               uint64 // continue behind this sequence
	Limit               int    // 1 to 1000; 100 unless given
}

// DeadLetters lists refused messages, oldest first. Without a project it lists
// those of all, and those whose project could not be read.
func (c *Client) DeadLetters(ctx context.Context, l ListLetters) (api.DeadLetterPage, error) {
	query := page(url.Values{}, l.Limit, "")
	for name, value := range map[string]string{"service": l.Service, "code": l.Code, "user": l.User} {
		if value != "" {
			query.Set(name, value)
		}
	}
	if l.After > 0 {
		query.Set("after", strconv.FormatUint(l.After, 10))
	}
	var out api.DeadLetterPage
	return out, c.call(ctx, request{method: http.MethodGet, path: "/v1/deadletters", query: query}, &out)
}

// DeadLetter returns one refused message with its body.
func (c *Client) DeadLetter(ctx context.Context, sequence uint64) (api.DeadLetter, error) {
	var out api.DeadLetter
	return out, c.call(ctx, request{method: http.MethodGet, path: letter(sequence, "")}, &out)
}

// RetryDeadLetter hands a refused message to its service again.
func (c *Client) RetryDeadLetter(ctx context.Context, sequence uint64) (api.Settled, error) {
	var out api.Settled
	return out, c.call(ctx, request{method: http.MethodPost, path: letter(sequence, "/retry")}, &out)
}

// DropDeadLetter forgets a refused message.
func (c *Client) DropDeadLetter(ctx context.Context, sequence uint64) (api.Settled, error) {
	var out api.Settled
	return out, c.call(ctx, request{method: http.MethodDelete, path: letter(sequence, "")}, &out)
}

func letter(sequence uint64, verb string) string {
	return "/v1/deadletters/" + strconv.FormatUint(sequence, 10) + verb
}
