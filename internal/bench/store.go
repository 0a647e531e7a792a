package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"palimpsest/internal/bench/bare"
	"palimpsest/internal/bench/usage"
	"palimpsest/pkg/api"
	"palimpsest/pkg/client"
	"palimpsest/pkg/scope"
)

const (
	// storedTarget: from a message to its rows may cost as much again as the rows.
	storedTarget = 0.5
	// The pause between two requests for a peer's progress is a fiftieth of the time
	// taken so far, within these bounds. A request costs the peer time, and the pause
	// bounds the error of a figure.
	pollPart  = 50
	leastPoll = 5 * time.Millisecond
	mostPoll  = 250 * time.Millisecond
	// turnRule consolidates on every episode.
	turnRule = "turn"
)

// measureStore measures ingest alone: the broker, the stream, the ingest stage
// and the memory store run, with the loop that embeds the stored rows;
// consolidation does not.
func measureStore(ctx context.Context, b *bench) ([]Figure, error) {
	messages := flood(b.stored)
	var rates, costs, unnamed pair
	ingest := func(ctx context.Context, who caller) (one run, err error) {
		err = b.with(ctx, PeerIngest, func(p *peer) error {
			if one, err = p.flood(ctx, who, messages, false); err != nil {
				return err
			}
			return b.keepRows(ctx, p, len(messages))
		})
		return one, err
	}
	known := func(ctx context.Context) error {
		one, err := ingest(ctx, owner)
		rates.ours, costs.ours = append(rates.ours, one.stored), append(costs.ours, one.cost)
		return err
	}
	unknown := func(ctx context.Context) error {
		one, err := ingest(ctx, anonymous)
		unnamed.ours = append(unnamed.ours, one.stored)
		return err
	}
	raw := func(ctx context.Context) error {
		one, err := b.insertRaw(ctx, len(messages))
		rates.limit, costs.limit = append(rates.limit, one.stored), append(costs.limit, one.cost)
		return err
	}
	if err := b.rounds(ctx, known, raw, unknown); err != nil {
		return nil, err
	}
	unnamed.limit = rates.limit
	figures := []Figure{
		rates.over("store.ingest", unitEpisodes, Higher, storedTarget),
		unnamed.over("store.ingest.anonymous", unitEpisodes, Higher, 0),
	}
	if slices.Min(costs.ours) > 0 && slices.Min(costs.limit) > 0 { // where the system tells
		figures = append(figures, costs.over("store.ingest.cpu", unitCost, Lower, 0))
	}
	return figures, nil
}

// run is the speed of a peer under a flood, in episodes a second from the first
// publish on.
type run struct {
	accepted, stored, known float64
	// cost is processor time, in µs an episode.
	cost float64
}

// unitCost is of processor time, from which other work on the machine takes
// nothing away.
const unitCost = "CPU µs/episode"

// flood publishes all messages and waits until they are stored, and with known
// until rule turn has consolidated them.
func (p *peer) flood(ctx context.Context, who caller, messages []message, known bool) (run, error) {
	var out run
	n := len(messages)
	spent, began := usage.Processor(p.command.Process.Pid), time.Now()
	rate := func() float64 { return float64(n) / time.Since(began).Seconds() }
	if _, err := p.publish(ctx, who, messages, (*publisher).windowed); err != nil {
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
	spent = usage.Processor(p.command.Process.Pid) - spent
	out.cost = float64(spent.Microseconds()) / float64(n)
	return out, nil
}

// account waits until the ledger of rule turn over all scopes is as wanted.
func (p *peer) account(ctx context.Context, wanted func(api.Account) bool) error {
	c, err := client.New(p.HTTP)
	if err != nil {
		return err
	}
	limit := time.After(patience)
	for began := time.Now(); ; {
		l, err := c.Ledger(ctx, scope.Selector{Project: scope.DefaultProject, All: true}, false)
		if err != nil {
			return err
		}
		for _, a := range l.Totals {
			if a.Rule == turnRule && wanted(a) {
				return nil
			}
		}
		select {
		case <-time.After(min(max(time.Since(began)/pollPart, leastPoll), mostPoll)):
		case <-ctx.Done():
			return ctx.Err()
		case <-limit:
			return fmt.Errorf("not within %v: %+v", patience, l.Totals)
		}
	}
}

// keepRows stops a peer and keeps the rows that it stored of a flood of n, for the
// bare engine to insert.
func (b *bench) keepRows(ctx context.Context, p *peer, n int) error {
	if b.rows[n] != nil {
		return nil
	}
	p.kill()
	stored, err := bare.ReadRows(ctx, memoryFile(p.dir))
	if err == nil && stored.Len() != n {
		err = fmt.Errorf("%d episodes stored of %d", stored.Len(), n)
	}
	b.rows[n] = stored
	return err
}

// insertRaw measures the limit: the cost for one writer to insert the same rows.
func (b *bench) insertRaw(ctx context.Context, n int) (_ run, err error) {
	dir, err := b.fresh("raw")
	if err != nil {
		return run{}, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	took, spent, err := b.rows[n].Insert(ctx, memoryFile(dir))
	if err != nil {
		return run{}, fmt.Errorf("bare SQLite: %w", err)
	}
	return run{stored: float64(n) / took.Seconds(), cost: float64(spent.Microseconds()) / float64(n)}, nil
}
