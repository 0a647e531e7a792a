package app

import (
	"context"
	"io"
	"log/slog"
	"strings"
	"testing"

	"palimpsest/internal/embed"
	"palimpsest/internal/embed/local"
	"palimpsest/internal/memory"
	"palimpsest/internal/recovery"
	"palimpsest/internal/store"
	"palimpsest/internal/terminal"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
	"palimpsest/services/ingest"
)

// queasy is a store that panics on content with "poison".
type queasy struct{ store.EpisodeWriter }

func (q queasy) PutEpisodes(ctx context.Context, es []memory.Episode) ([]store.Put, error) {
	for _, e := range es {
		if strings.Contains(e.Content, "poison") {
			panic("cannot be swallowed")
		}
	}
	return q.EpisodeWriter.PutEpisodes(ctx, es)
}

// TestP8FaultPoisonEpisodeIsTheNewest: an episode that was buried because it could
// not be stored counts as missing nowhere. A start does not store it again, even if
// it is the newest of its partition, and a rebuild leaves it out. That holds after
// its dead letter is deleted too, and if it was retried and then stored after later
// episodes.
func TestP8FaultPoisonEpisodeIsTheNewest(t *testing.T) {
	t.Parallel()
	cfg := loopback(t.TempDir())
	cfg.Pipeline.MaxDeliveries, cfg.Pipeline.RetryBase, cfg.Pipeline.RetryMax = 3, 1, 1
	queasily := func(h *process) {
		s, err := ingest.New(h.cfg.Ingest, ingest.Deps{
			Episodes: queasy{h.store}, Cursors: h.store, Shares: h.store, Vectors: h.store, Embedders: embed.Only(local.New()),
		})
		if err != nil {
			t.Fatal(err)
		}
		h.ingest = s
		h.replace(s)
	}
	place := func(h *process, ordinal uint64, content string) {
		t.Helper()
		consolidated(t, h, "nora", ordinal)
		r := events.Range{From: ordinal - 1, To: ordinal}
		got, err := h.store.EpisodeRange(t.Context(), scope.Scope{Project: "default", User: "nora"}, r)
		if err != nil || len(got) != 1 || got[0].Content != content {
			t.Errorf("place %d has %+v, %v", ordinal, got, err)
		}
	}
	h, stop := openAltered(t, cfg, func(*process) {}, queasily)
	tell(t, h, "nora", 1, "I live in Oslo.")
	tell(t, h, "nora", 2, "My cat ate poison.")
	deadLetters(t, h, 1)
	place(h, 1, "I live in Oslo.")
	stop()
	h, stop = openAltered(t, cfg, func(*process) {}, queasily)
	tell(t, h, "nora", 3, "I live in Rome.")
	place(h, 2, "I live in Rome.")
	stop()
	h, stop = openWith(t, cfg) // it agrees now
	if _, err := caller(t, h).RetryDeadLetter(t.Context(), deadLetters(t, h, 1)[0].Sequence); err != nil {
		t.Fatal(err)
	}
	place(h, 3, "My cat ate poison.")
	deadLetters(t, h, 0)
	stop()
	out, err := rebuild(t.Context(), cfg, slog.New(slog.DiscardHandler), terminal.NewProgress(io.Discard), recovery.Mode{Check: true})
	if err != nil || out.Live != out.Rebuilt || out.Moved > 0 {
		t.Errorf("rebuilt %+v, %v", out, err)
	}
}
