package httpserver

import (
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/klauspost/compress/gzhttp"
	"github.com/rs/cors"
)

// leastCompressed is the size in bytes below which an answer is sent as it is.
const leastCompressed = 1 << 10

// compressed are the types of answers that shrink.
var compressed = []string{
	"application/json", "application/problem+json", "application/openapi+json", "application/x-ndjson", "text/csv", "text/html", "text/plain",
}

// compressing sends answers in gzip to clients that take it. It leaves alone clients
// that take server-sent events: each has to arrive when it is written.
func compressing(next http.Handler) (http.Handler, error) {
	wrap, err := gzhttp.NewWrapper(gzhttp.MinSize(leastCompressed), gzhttp.CompressionLevel(1), gzhttp.ContentTypeFilter(func(kind string) bool {
		of, _, err := mime.ParseMediaType(kind)
		return err == nil && slices.Contains(compressed, of)
	}))
	if err != nil {
		return nil, err
	}
	shorter := wrap(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.Header.Get("Accept"), "text/event-stream") {
			next.ServeHTTP(w, r)
			return
		}
		shorter.ServeHTTP(w, r)
	}), nil
}

// pages lets the web pages of the configured origins call, and tells their browsers
// so. Cookies are of no use here, and not allowed.
func (c Config) pages(next http.Handler) http.Handler {
	if len(c.Origins) == 0 {
		return next
	}
	return cors.New(cors.Options{
		AllowedOrigins: c.Origins,
		AllowedMethods: []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete},
		AllowedHeaders: []string{
			"Authorization", "X-API-Key", "Content-Type", "Accept", "Idempotency-Key", "If-Match", "Last-Event-ID", "Mcp-Protocol-Version",
		},
		ExposedHeaders: []string{"ETag", "Retry-After", "Palimpsest-Stale", "WWW-Authenticate"},
	}).Handler(next)
}

// isOrigin reports whether text is the scheme, host and port of pages.
func isOrigin(text string) bool {
	scheme, host, ok := strings.Cut(text, "://")
	return ok && (scheme == "http" || scheme == "https") && host != "" && host == strings.ToLower(host) && !strings.ContainsAny(host, "/*? ")
}
