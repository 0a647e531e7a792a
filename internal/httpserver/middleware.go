package httpserver

import (
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"palimpsest/pkg/api"
)

// wrap bounds the body, refuses a compressed one, whose size is not known, recovers panics and records each request at debug level
// without its query or body, which may hold content.
func wrap(next http.Handler, maxBody int64, log *slog.Logger) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		rec := &recorder{ResponseWriter: w}
		if r.Body != nil {
			r.Body = http.MaxBytesReader(rec, r.Body, maxBody)
		}
		defer func() {
			if p := recover(); p != nil {
				if p == http.ErrAbortHandler { //nolint:errorlint // the sentinel is compared by identity, as net/http does
					log.Debug("http: answer cut", "method", r.Method, "path", r.URL.Path, "took", time.Since(start))
					panic(p)
				}
				log.Error("http: handler panicked", "method", r.Method, "path", r.URL.Path, "panic", p, "stack", string(debug.Stack()))
				rec.apologise()
			}
			log.Debug("http: request", "method", r.Method, "path", r.URL.Path, "status", rec.status, "took", time.Since(start))
		}()
		if coding := r.Header.Get("Content-Encoding"); coding != "" && !strings.EqualFold(coding, "identity") {
			refuse(rec, api.NewProblem(http.StatusUnsupportedMediaType, api.CodeMalformed, "Content-Encoding", "compressed bodies are not read; send the body without a content encoding"))
			return
		}
		next.ServeHTTP(rec, r)
	})
}

// recorder remembers the status that was sent.
type recorder struct {
	http.ResponseWriter
	status int
}

func (r *recorder) WriteHeader(status int) {
	if r.status == 0 {
		r.status = status
	}
	r.ResponseWriter.WriteHeader(status)
}

func (r *recorder) Write(b []byte) (int, error) {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	return r.ResponseWriter.Write(b)
}

// apologise answers for a handler that panicked. If it had begun an answer, the
// connection is cut, so that the client detects an incomplete answer.
func (r *recorder) apologise() {
	if r.status != 0 {
		panic(http.ErrAbortHandler)
	}
	refuse(r, api.NewProblem(http.StatusInternalServerError, api.CodeInternal, "", "the request could not be answered"))
}

// Unwrap lets http.ResponseController flush what streams.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }
