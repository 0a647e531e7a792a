package erasure

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"palimpsest/internal/httpserver"
	"palimpsest/internal/poll"
	"palimpsest/pkg/api"
)

// eraseAgain is the pause before an erasure that waits for a server is tried again.
const eraseAgain = 5 * time.Second

// Waiting answers callers while users are erased.
type Waiting struct{ cause atomic.Pointer[error] }

// ready says why nothing else is answered.
func (w *Waiting) ready(context.Context) api.Readiness {
	text := "users are being erased; the services start afterwards"
	if err := w.cause.Load(); err != nil {
		text = "an erasure waits: " + (*err).Error()
	}
	return api.Readiness{Checks: map[string]api.Check{"erasure": {Error: text}}}
}

// Handler answers readiness, and refuses the rest as what passes.
func (w *Waiting) Handler(c httpserver.Config, version string) http.Handler {
	mux := http.NewServeMux()
	status := c.Status(version, w.ready, http.NotFoundHandler())
	mux.Handle("GET /healthz", status)
	mux.Handle("GET /readyz", status)
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		p := api.NewProblem(http.StatusServiceUnavailable, api.CodeStoreUnavailable, "", "users are being erased, and no requests are served meanwhile; GET /readyz says more")
		w.Header().Set("Content-Type", p.ContentType(""))
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(p.Status)
		_ = json.NewEncoder(w).Encode(p) // a client that went away needs no answer
	})
	return mux
}

// Until calls erase until it returns no error that passes, or ctx has ended.
func (w *Waiting) Until(ctx context.Context, log *slog.Logger, passes func(error) bool, erase func(context.Context) error) error {
	var err error
	if poll.Until(ctx, eraseAgain, func() (bool, error) {
		if err = erase(ctx); !passes(err) {
			return true, nil
		}
		if failed := err; w.cause.Swap(&failed) == nil {
			log.Warn("an erasure waits", "error", err)
		}
		return false, nil
	}) != nil {
		return errors.Join(ErrPending, err)
	}
	return err
}

// Serve calls erase until it returns no error that passes, or ctx has ended. Meanwhile it
// answers on the address of the API, and readiness says what the erasure waits for.
func Serve(ctx context.Context, at httpserver.Config, version string, log *slog.Logger, passes func(error) bool, erase func(context.Context) error) error {
	var waiting Waiting
	server, err := httpserver.Listen(at, waiting.Handler(at, version), log)
	if err != nil {
		return err
	}
	serving, stop := context.WithCancel(ctx)
	served := make(chan error, 1)
	go func() { served <- server.Serve(serving) }()
	err = waiting.Until(ctx, log, passes, erase)
	stop()
	return errors.Join(err, <-served)
}
