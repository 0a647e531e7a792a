package app

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"palimpsest/internal/embed"
)

// refusingEmbedder never takes what says "poison".
type refusingEmbedder struct{ embed.Embedder }

func (e refusingEmbedder) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	if slices.ContainsFunc(texts, func(s string) bool { return strings.Contains(s, "poison") }) {
		return nil, fmt.Errorf("%w: too bitter", embed.ErrRefused)
	}
	return e.Embedder.Embed(ctx, texts)
}

// TestP7FaultTextRefusedByTheEmbedder: readiness tells of it and stays green, and all
// else has its vector.
func TestP7FaultTextRefusedByTheEmbedder(t *testing.T) {
	t.Parallel()
	h, stop := openAltered(t, loopback(t.TempDir()), func(h *process) { h.embedder = refusingEmbedder{h.embedder} }, func(*process) {})
	defer stop()
	healed(t, h)
	tell(t, h, "nora", 1, "The poison is in the cup.")
	tell(t, h, "nora", 2, "I live in Oslo.")
	consolidated(t, h, "nora", 2)
	eventually(t, "all but the refused text are embedded", func() error {
		stats, err := h.store.Stats(t.Context())
		if err == nil && (stats.VectorsPending > 0 || stats.VectorsRefused != 1) {
			err = fmt.Errorf("%d are pending, %d refused", stats.VectorsPending, stats.VectorsRefused)
		}
		return err
	})
	check := h.readiness.Ready(t.Context()).Checks["memory"]
	why, _ := check.Details["vectors_refused_why"].([]string)
	if !check.OK || len(why) != 1 || !strings.Contains(why[0], "nora-1") || !strings.Contains(why[0], "too bitter") {
		t.Errorf("%+v", check)
	}
}
