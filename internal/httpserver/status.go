package httpserver

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"net"
	"net/http"
	"strings"

	"palimpsest/internal/auth"
	"palimpsest/pkg/api"
)

// Status answers for a process that has nothing else to say: GET /healthz says
// that it runs, /readyz how each thing that it needs is, /metrics its metrics. Metrics,
// and the details of readiness, are for operators.
func (c Config) Status(version string, ready func(context.Context) api.Readiness, metrics http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, "application/json", map[string]string{"status": "ok", "version": version})
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		readiness, status := ready(r.Context()), http.StatusOK
		if !readiness.Ready {
			status = http.StatusServiceUnavailable
		}
		if !c.operates(r) {
			readiness = readiness.WithoutDetails()
		}
		answer(w, status, "application/json", readiness)
	})
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) {
		if !c.operates(r) {
			w.Header().Set("WWW-Authenticate", "Bearer")
			refuse(w, api.NewProblem(http.StatusUnauthorized, api.CodeUnauthorized, "Authorization",
				"from other machines /metrics takes the key that http.metrics_key names: Authorization: Bearer KEY"))
			return
		}
		metrics.ServeHTTP(w, r)
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		refuse(w, api.NewProblem(http.StatusNotFound, api.CodeNotFound, "", "there are GET /healthz, /readyz and /metrics; the API is the query service's"))
	})
	return mux
}

// operates reports whether a request is an operator's: it brings the key, or it needs
// none. With auth: auto a request of this machine needs none.
func (c Config) operates(r *http.Request) bool {
	switch c.Mode() {
	case auth.Off:
		return true
	case auth.Auto:
		if host, _, err := net.SplitHostPort(r.RemoteAddr); err == nil && net.ParseIP(host).IsLoopback() {
			return true
		}
	case auth.Required:
	}
	scheme, key, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		key = r.Header.Get("X-API-Key")
	}
	return c.MetricsKey != "" && subtle.ConstantTimeCompare([]byte(strings.TrimSpace(key)), []byte(c.MetricsKey)) == 1
}

func answer(w http.ResponseWriter, status int, kind string, body any) {
	w.Header().Set("Content-Type", kind)
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the client has gone
}

func refuse(w http.ResponseWriter, p *api.Problem) { answer(w, p.Status, p.ContentType(""), p) }
