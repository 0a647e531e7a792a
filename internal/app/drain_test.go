package app

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"palimpsest/internal/broker"
	"palimpsest/internal/decide"
	"palimpsest/internal/decide/deterministic"
	"palimpsest/pkg/events"
	"palimpsest/services/decider"
)

// asking is a decider that first makes a request to the broker that gets no
// answer.
type asking struct {
	decide.Decider
	ask func(context.Context) error
}

func (a asking) Decide(ctx context.Context, candidates []events.Candidate, known decide.Known) (decide.Decision, error) {
	if err := a.ask(ctx); err != nil {
		return decide.Decision{}, err
	}
	return a.Decider.Decide(ctx, candidates, known)
}

// TestDrainEndsWithTheRequest stops a process one of whose handlers waits for an
// answer of the broker that never comes. The request ends by itself long before
// handlers are cancelled, and so does the drain.
func TestDrainEndsWithTheRequest(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{}, 100)
	h, stop := openAltered(t, loopback(t.TempDir()), func(*process) {}, func(h *process) {
		if _, err := h.streams.Conn().Subscribe("mute", func(*nats.Msg) {}); err != nil {
			t.Fatal(err)
		}
		s, err := decider.New(h.cfg.Decider, decider.Deps{
			State: h.store, Whole: h.store, Facts: h.store, Search: h.store, Deciders: map[string]decide.Decider{"rules": asking{
				deterministic.New(), func(ctx context.Context) error {
					asked <- struct{}{}
					_, err := h.streams.JetStream().PublishMsg(ctx, nats.NewMsg("mute"))
					return err
				},
			}},
		})
		if err != nil {
			t.Fatal(err)
		}
		h.replace(s)
	})
	tell(t, h, "nora", 1, "I live in Oslo.")
	receive(t, "the request", asked)
	began := time.Now()
	stop()
	if took := time.Since(began); took > 2*broker.RequestLimit {
		t.Errorf("the drain took %v, the request at most %v", took, broker.RequestLimit)
	}
}
