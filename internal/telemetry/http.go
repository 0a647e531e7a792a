package telemetry

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
)

// HTTP returns next with its requests counted and timed, each in the trace that
// its client names, and a span of it where tracer is not nil. It tells of the
// route alone: paths and queries may name users.
func (m *Metrics) HTTP(next http.Handler, tracer trace.Tracer) http.Handler {
	var w3c propagation.TraceContext
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		if r.Header.Get("Traceparent") != "" {
			r = r.WithContext(w3c.Extract(r.Context(), propagation.HeaderCarrier(r.Header)))
		}
		var span trace.Span
		if tracer != nil {
			ctx, s := tracer.Start(r.Context(), r.Method, trace.WithSpanKind(trace.SpanKindServer))
			span, r = s, r.WithContext(ctx)
		}
		answer, whole := &answer{ResponseWriter: w, status: http.StatusOK}, false
		defer func() {
			if !whole { // it panicked: the server answers, or cuts the answer
				answer.status = http.StatusInternalServerError
			}
			method, route := methodOf(r.Method), routeOf(r.Pattern)
			m.requests.WithLabelValues(method, route, strconv.Itoa(answer.status)).Inc()
			m.answers.WithLabelValues(method, route).Observe(time.Since(began).Seconds())
			if span != nil {
				endRequest(span, method, route, answer.status)
			}
		}()
		next.ServeHTTP(answer, r)
		whole = true
	})
}

func endRequest(span trace.Span, method, route string, status int) {
	span.SetName(method + " " + route)
	span.SetAttributes(semconv.HTTPRequestMethodKey.String(method), semconv.HTTPRoute(route), semconv.HTTPResponseStatusCode(status))
	if status >= http.StatusInternalServerError {
		span.SetStatus(codes.Error, "")
	}
	span.End()
}

// methodOf bounds what clients can make up.
func methodOf(method string) string {
	switch method {
	case http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodHead, http.MethodOptions:
		return method
	}
	return "other"
}

// routeOf is the path of a pattern of [http.ServeMux].
func routeOf(pattern string) string {
	if _, path, ok := strings.Cut(pattern, " "); ok {
		return path
	}
	return pattern
}

// answer remembers the status that was sent.
type answer struct {
	http.ResponseWriter
	status int
	sent   bool
}

// WriteHeader implements [http.ResponseWriter].
func (a *answer) WriteHeader(status int) {
	if !a.sent && status >= http.StatusOK {
		a.status, a.sent = status, true
	}
	a.ResponseWriter.WriteHeader(status)
}

// Write implements [http.ResponseWriter].
func (a *answer) Write(b []byte) (int, error) {
	a.sent = true
	return a.ResponseWriter.Write(b)
}

// Unwrap lets http.ResponseController flush what streams.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }
