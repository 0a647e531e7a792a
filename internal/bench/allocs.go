package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"

	"palimpsest/internal/embed"
	"palimpsest/pkg/events"
	"palimpsest/services/ingest"
)

// measureAllocs counts the allocations for one message from the delivered bytes to
// its committed rows: one caller, the real store, scopes that exist already.
func measureAllocs(ctx context.Context, b *bench) ([]Figure, error) {
	var counts, bytes []float64
	err := b.rounds(ctx, func(ctx context.Context) error {
		count, size, err := b.allocs(ctx)
		counts, bytes = append(counts, count), append(bytes, size)
		return err
	})
	if err != nil {
		return nil, err
	}
	return []Figure{
		{Name: "allocs.count", Spread: spread("allocations/message", counts), Better: Lower},
		{Name: "allocs.bytes", Spread: spread("bytes/message", bytes), Better: Lower},
	}, nil
}

func (b *bench) allocs(ctx context.Context) (count, size float64, err error) {
	dir, err := b.fresh("allocs")
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	s, err := b.OpenStore(ctx, dir)
	if err != nil {
		return 0, 0, fmt.Errorf("open store: %w", err)
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	service, err := ingest.New(ingest.Config{}, ingest.Deps{
		Episodes: s, Cursors: s, Shares: s, Vectors: s, Embedders: embed.Only(b.Embedder),
	})
	if err != nil {
		return 0, 0, err
	}
	stage := service.Stages()[0]
	all := delivered(flood(b.messages + floodScopes))
	for _, raw := range all[:floodScopes] { // makes the scopes
		if _, err := stage.Handle(ctx, raw); err != nil {
			return 0, 0, err
		}
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for _, raw := range all[floodScopes:] {
		if _, err := stage.Handle(ctx, raw); err != nil {
			return 0, 0, err
		}
	}
	runtime.ReadMemStats(&after)
	n := float64(b.messages)
	return float64(after.Mallocs-before.Mallocs) / n, float64(after.TotalAlloc-before.TotalAlloc) / n, nil
}

// delivered is the messages as the stream hands them out.
func delivered(messages []message) []events.Raw {
	all := make([]events.Raw, len(messages))
	at := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	for i, m := range messages {
		all[i] = events.Raw{
			Subject: m.subject, Body: m.body, Stream: "EPISODES", StreamID: "EPISODES 1", Sequence: uint64(i + 1),
			Time: at.Add(time.Duration(i) * time.Millisecond), Delivery: 1,
		}
	}
	return all
}
