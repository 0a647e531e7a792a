package httpserver

import (
	"context"
	"encoding/json"
	"net/http"

	"palimpsest/pkg/api"
)

// Status answers for a process that has nothing else to say: GET /healthz says
// that it runs, /readyz how each thing that it needs is, /metrics its metrics.
func Status(version string, ready func(context.Context) api.Readiness, metrics http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, "application/json", map[string]string{"status": "ok", "version": version})
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		readiness, status := ready(r.Context()), http.StatusOK
		if !readiness.Ready {
			status = http.StatusServiceUnavailable
		}
		answer(w, status, "application/json", readiness)
	})
	mux.Handle("GET /metrics", metrics)
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		refuse(w, api.NewProblem(http.StatusNotFound, api.CodeNotFound, "", "there are GET /healthz, /readyz and /metrics; the API is the query service's"))
	})
	return mux
}

func answer(w http.ResponseWriter, status int, kind string, body any) {
	w.Header().Set("Content-Type", kind)
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the client has gone
}

func refuse(w http.ResponseWriter, p *api.Problem) { answer(w, p.Status, p.ContentType(""), p) }
