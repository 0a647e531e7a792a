package bench

import (
	"context"
	"slices"
)

// flowTarget is in episodes a second, over 200 scopes on two processors.
const flowTarget = 2_000

// measureFlow measures the whole product, as `palimpsest up` runs it: every
// stage of every episode, rules turn and sleep, facts embedded, the audit log
// written.
func measureFlow(ctx context.Context, b *bench) ([]Figure, error) {
	messages := flood(b.flood)
	var runs []run
	var raw, bare []float64
	whole := func(ctx context.Context) error {
		return b.with(ctx, PeerWhole, func(p *peer) error {
			one, err := p.flood(ctx, anonymous, messages, true)
			runs = append(runs, one)
			if err == nil {
				err = b.keepRows(ctx, p, len(messages))
			}
			return err
		})
	}
	inserts := func(ctx context.Context) error {
		run, err := b.insertRaw(ctx, len(messages))
		raw = append(raw, run.stored)
		return err
	}
	publishes := func(ctx context.Context) error {
		return b.with(ctx, PeerBare, func(p *peer) error {
			took, err := p.publish(ctx, anonymous, messages, (*publisher).windowed)
			bare = append(bare, float64(len(messages))/took.Seconds())
			return err
		})
	}
	if err := b.rounds(ctx, whole, inserts, publishes); err != nil {
		return nil, err
	}
	of := func(what func(run) float64) []float64 {
		values := make([]float64, len(runs))
		for i, r := range runs {
			values[i] = what(r)
		}
		return values
	}
	stored, known := of(func(r run) float64 { return r.stored }), of(func(r run) float64 { return r.known })
	figures := []Figure{
		{Name: "flow.known", Spread: spread(unitEpisodes, known), Better: Higher, Target: flowTarget},
		pair{known, raw}.over("flow.known.of-inserts", unitEpisodes, Higher, 0),
		pair{known, bare}.over("flow.known.of-publishes", unitEpisodes, Higher, 0),
		pair{stored, raw}.over("flow.stored.of-inserts", unitEpisodes, Higher, storedTarget),
	}
	if costs := of(func(r run) float64 { return r.cost }); slices.Min(costs) > 0 { // where the system tells
		figures = append(figures, Figure{Name: "flow.cpu", Spread: spread(unitCost, costs), Better: Lower})
	}
	return figures, nil
}
