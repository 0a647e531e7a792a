package httpserver

import (
	"bytes"
	"context"
	"io"
	"net/http"

	"palimpsest/internal/auth"
)

// Inside returns a transport to a handler of the same process. Its calls end when
// outer does, and are made in the name of outer's caller.
func Inside(outer context.Context, handler http.Handler) http.RoundTripper {
	return inside{handler, outer}
}

type inside struct {
	handler http.Handler
	outer   context.Context //nolint:containedctx // the transport is made for one request
}

// RoundTrip implements [http.RoundTripper].
func (t inside) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(t.outer, cancel)()
	r = r.WithContext(auth.With(ctx, auth.Of(t.outer)))
	if r.Body == nil {
		r.Body = http.NoBody
	}
	defer r.Body.Close() //nolint:errcheck // the contract of RoundTrip; it was read
	out := &response{header: http.Header{}, status: http.StatusOK}
	t.handler.ServeHTTP(out, r)
	return &http.Response{
		StatusCode: out.status, Status: http.StatusText(out.status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: out.header, Body: io.NopCloser(&out.body), ContentLength: int64(out.body.Len()), Request: r,
	}, nil
}

// response keeps an answer in memory.
type response struct {
	header http.Header
	status int
	body   bytes.Buffer
	begun  bool
}

func (r *response) Header() http.Header { return r.header }

func (r *response) WriteHeader(status int) {
	if !r.begun {
		r.status, r.begun = status, true
	}
}

func (r *response) Write(p []byte) (int, error) {
	r.begun = true
	return r.body.Write(p)
}
