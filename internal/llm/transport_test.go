package llm_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"palimpsest/internal/llm"
)

type client struct {
	*http.Client
	url string
}

// Get reads a page of the endpoint.
func (c client) Get(path string) (*http.Response, error) {
	res, err := c.Client.Get(c.url + path)
	if err == nil {
		_ = res.Body.Close() // it is in memory
	}
	return res, err
}

// clientFor asks an endpoint that answers with one status.
func clientFor(t *testing.T, status int, after string) client {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", after)
		w.WriteHeader(status)
	}))
	c := client{llm.NewHTTPClient(time.Minute), server.URL}
	t.Cleanup(func() { c.CloseIdleConnections(); server.Close() })
	return c
}

func TestStatus(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]error{
		200: nil, 402: llm.ErrQuota, 429: llm.ErrRateLimited, 500: llm.ErrUnavailable, 403: llm.ErrDenied, 422: llm.ErrInvalid, 413: llm.ErrInvalid,
	} {
		if _, err := clientFor(t, status, "").Get("/"); !errors.Is(err, want) {
			t.Errorf("status %d: %v, want %v", status, err, want)
		}
	}
}
