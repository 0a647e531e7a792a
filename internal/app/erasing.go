package app

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	"palimpsest/internal/audit/clickhouse"
	"palimpsest/internal/erasure"
	"palimpsest/internal/httpserver"
	"palimpsest/pkg/api"
)

// eraseAgain is the pause before an erasure that waits for a server is tried again.
const eraseAgain = 5 * time.Second

// erasing is what callers are told while users are erased.
type erasing struct{ waits atomic.Pointer[error] }

// ready says why nothing else is answered.
func (e *erasing) ready(context.Context) api.Readiness {
	text := "users are erased; the services start behind it"
	if err := e.waits.Load(); err != nil {
		text = "an erasure waits: " + (*err).Error()
	}
	return api.Readiness{Checks: map[string]api.Check{"erasure": {Error: text}}}
}

// handler answers readiness, and refuses the rest as what passes.
func (e *erasing) handler(c httpserver.Config) http.Handler {
	mux := http.NewServeMux()
	status := c.Status(Version(), e.ready, http.NotFoundHandler())
	mux.Handle("GET /healthz", status)
	mux.Handle("GET /readyz", status)
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		p := api.NewProblem(http.StatusServiceUnavailable, api.CodeStoreUnavailable, "", "users are erased, and nothing is served meanwhile; GET /readyz tells more")
		w.Header().Set("Content-Type", p.ContentType(""))
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(p.Status)
		_ = json.NewEncoder(w).Encode(p) // a client that went away needs no answer
	})
	return mux
}

// eraseAsked finishes the erasures that were asked for. Nothing else runs yet, so that it
// answers on the address of the API meanwhile. Where ClickHouse cannot apply a mutation, the
// erasure waits until the cause is gone, and readiness says what it is.
func (h *process) eraseAsked(ctx context.Context) error {
	if len(h.cfg.erasures.Pending()) == 0 {
		return nil
	}
	var told erasing
	server, err := httpserver.Listen(h.cfg.HTTP, told.handler(h.cfg.HTTP), h.log)
	if err != nil {
		return err
	}
	serving, stop := context.WithCancel(ctx)
	served := make(chan error, 1)
	go func() { served <- server.Serve(serving) }()
	err = h.eraseAll(ctx, &told)
	stop()
	return errors.Join(err, <-served)
}

func (h *process) eraseAll(ctx context.Context, told *erasing) error {
	ticker := time.NewTicker(eraseAgain)
	defer ticker.Stop()
	for {
		_, err := h.eraser().run(ctx)
		if !errors.Is(err, clickhouse.ErrMutation) {
			return err
		}
		if told.waits.Swap(&err) == nil {
			h.log.Warn("an erasure waits", "error", err)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return errors.Join(erasure.ErrPending, err)
		}
	}
}
