package bench

import (
	"context"
	"fmt"
	"os"
	"time"

	"palimpsest/pkg/api"
	"palimpsest/pkg/client"
	"palimpsest/pkg/scope"
)

const (
	// storedTarget: from a message to its rows may cost as much again as the rows.
	storedTarget = 0.5
	// pollPause is how often a peer is asked how far it is: what that costs it is
	// part of the figures, and so is half of the pause.
	pollPause = 20 * time.Millisecond
	// turnRule consolidates on every episode.
	turnRule = "turn"
)

// measureStore measures ingest alone: the broker, the stream, the ingest stage
// and the memory store run, with the loop that embeds what was stored;
// consolidation does not.
func measureStore(ctx context.Context, b *bench) ([]Figure, error) {
	messages := flood(b.flood)
	var rates pair
	var costs []float64
	ingest := func(ctx context.Context) error {
		return b.with(ctx, PeerIngest, func(p *peer) error {
			run, err := p.flood(ctx, messages, false)
			rates.ours = append(rates.ours, run.stored)
			costs = append(costs, run.cost)
			if err == nil {
				err = b.keepRows(ctx, p)
			}
			return err
		})
	}
	raw := func(ctx context.Context) error {
		rate, err := b.insertRaw(ctx)
		rates.limit = append(rates.limit, rate)
		return err
	}
	if err := b.rounds(ctx, ingest, raw); err != nil {
		return nil, err
	}
	return []Figure{
		rates.over("store.ingest", unitEpisodes, Higher, storedTarget),
		{Name: "store.ingest.cpu", Spread: spread(unitCost, costs), Better: Lower},
	}, nil
}

// run is what a peer made of a flood, in episodes a second from the first
// publish on.
type run struct {
	accepted, stored, known float64
	// cost is processor time, in µs an episode.
	cost float64
}

const unitCost = "CPU µs/episode"

// flood publishes all messages and waits until they are stored, and with known
// until rule turn has consolidated them.
func (p *peer) flood(ctx context.Context, messages []message, known bool) (run, error) {
	var out run
	n := len(messages)
	spent, began := processorTime(p.command.Process.Pid), time.Now()
	rate := func() float64 { return float64(n) / time.Since(began).Seconds() }
	if _, err := p.publish(ctx, messages, (*publisher).windowed); err != nil {
		return out, err
	}
	out.accepted = rate()
	if err := p.account(ctx, func(a api.Account) bool { return a.Accepted == uint64(n) }); err != nil {
		return out, fmt.Errorf("await storing: %w", err)
	}
	out.stored = rate()
	if known {
		if err := p.account(ctx, func(a api.Account) bool { return a.Consolidated == uint64(n) }); err != nil {
			return out, fmt.Errorf("await consolidation: %w", err)
		}
		out.known = rate()
	}
	spent = processorTime(p.command.Process.Pid) - spent
	out.cost = float64(spent.Microseconds()) / float64(n)
	return out, nil
}

// account waits until the ledger of rule turn over all scopes is as wanted.
func (p *peer) account(ctx context.Context, wanted func(api.Account) bool) error {
	c, err := client.New(p.HTTP)
	if err != nil {
		return err
	}
	limit, tick := time.After(patience), time.NewTicker(pollPause)
	defer tick.Stop()
	for {
		l, err := c.Ledger(ctx, scope.Selector{Project: scope.DefaultProject}, false)
		if err != nil {
			return err
		}
		for _, a := range l.Totals {
			if a.Rule == turnRule && wanted(a) {
				return nil
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		case <-limit:
			return fmt.Errorf("not within %v: %+v", patience, l.Totals)
		}
	}
}

// keepRows ends a peer and keeps what it stored, for the bare engine to insert.
func (b *bench) keepRows(ctx context.Context, p *peer) (err error) {
	if b.rows != nil {
		return nil
	}
	p.kill()
	b.rows, err = readRows(ctx, memoryFile(p.dir))
	if err == nil && len(b.rows.episodes) != b.flood {
		err = fmt.Errorf("%d episodes stored of %d", len(b.rows.episodes), b.flood)
	}
	return err
}

// insertRaw is the limit: the rate at which one writer inserts the same rows.
func (b *bench) insertRaw(ctx context.Context) (float64, error) {
	dir, err := b.fresh("raw")
	if err != nil {
		return 0, err
	}
	took, err := b.rows.insert(ctx, dir)
	if err != nil {
		return 0, fmt.Errorf("bare SQLite: %w", err)
	}
	return float64(len(b.rows.episodes)) / took.Seconds(), os.RemoveAll(dir)
}
