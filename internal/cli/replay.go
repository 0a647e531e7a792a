package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"strconv"
	"time"

	"palimpsest/internal/app"
	"palimpsest/pkg/api"
	"palimpsest/pkg/client"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

type replayCommand struct {
	Whose
	Scope string   `help:"One fact scope by its key, such as /user/alice/, in place of --user, --agent and --session." placeholder:"KEY"`
	From  point    `help:"First sequence, or earliest commit time (RFC 3339 or YYYY-MM-DD)." placeholder:"POINT"`
	To    point    `help:"Last sequence, or the time before which the effect was committed." placeholder:"POINT"`
	After uint64   `help:"Resume after this sequence."`
	Kind  []string `help:"Only effects with a delta of this operation (add, update, delete, noop)." enum:"add,update,delete,noop"`
	auditFlags
	Limit    int           `help:"Effects at most; all unless given."`
	Speed    float64       `help:"Speed as a multiple of the original; 0 is as fast as possible." default:"0"`
	MaxPause time.Duration `help:"Shorten silences to this, after --speed; 0 keeps them." default:"1m"`
	Format   string        `help:"ndjson or cloudevents: one JSON object per line either way." enum:"ndjson,cloudevents" default:"ndjson"`
	Follow   bool          `short:"f" help:"Continue with later effects until interrupted."`
}

// maxSpeed bounds --speed; beyond it there is nothing left to wait for.
const maxSpeed = 1e6

// Validate implements kong's hook.
func (c *replayCommand) Validate() error {
	switch {
	case !(c.Speed >= 0 && c.Speed <= maxSpeed):
		return fmt.Errorf("--speed: %g is outside 0 to %g", c.Speed, float64(maxSpeed))
	case c.MaxPause < 0:
		return errors.New("--max-pause: is negative")
	case c.Limit < 0:
		return errors.New("--limit: is negative")
	case c.Scope != "" && (c.User != nil || c.Agent != nil || c.Session != nil || c.AllUsers):
		return errors.New("--scope names user, agent and session already")
	case c.Follow && c.To != point{}:
		return errors.New("--follow and --to exclude each other")
	case c.To.sequence > 0 && c.To.sequence < c.From.sequence, !c.To.at.IsZero() && c.To.at.Before(c.From.at):
		return errors.New("--to lies before --from")
	case c.After > 0 && c.From.sequence > 0:
		return errors.New("--after and a sequence in --from exclude each other")
	}
	return nil
}

// Run implements the command. The stream is JSON with and without --json.
func (c *replayCommand) Run(inv *app.Invocation) error {
	sel, err := c.selection(inv.Project())
	if err != nil {
		return err
	}
	cl, err := inv.Client()
	if err != nil {
		return err
	}
	query := c.query()
	if query.Filters, err = c.filters(); err != nil {
		return err
	}
	r := &replaying{
		client: cl, sel: sel, query: query, pacer: pacer{speed: c.Speed, most: c.MaxPause}, errs: inv.Terminal().Err,
		write: lineWriter(inv.Terminal().Out, c.Format), last: query.After,
	}
	return r.ended(inv.Context(), r.run(inv.Context()))
}

// ended says where to go on after an error; to interrupt is how following ends.
func (r *replaying) ended(ctx context.Context, err error) error {
	interrupted := ctx.Err() != nil
	if interrupted && r.query.Follow {
		err = nil
	}
	switch {
	case err == nil || r.last == 0:
		return err
	case interrupted:
		return fmt.Errorf("interrupted; continue with --after %d", r.last)
	}
	return fmt.Errorf("%w; continue with --after %d", err, r.last)
}

func (c *replayCommand) selection(project string) (scope.Selector, error) {
	if c.Scope == "" {
		return c.Selector(project)
	}
	s, err := scope.ParseKey(project, c.Scope)
	if err != nil {
		return scope.Selector{}, fmt.Errorf("--scope: %q: %w", c.Scope, err)
	}
	return scope.Exactly(s), nil
}

func (c *replayCommand) query() client.ReplayAudit {
	q := client.ReplayAudit{
		After: c.After, Until: c.To.sequence, From: c.From.at, To: c.To.at, Kinds: c.Kind, Limit: c.Limit, Follow: c.Follow,
	}
	if c.From.sequence > 0 {
		q.After = c.From.sequence - 1
	}
	return q
}

// point is a place in the stream: a sequence, or an instant.
type point struct {
	sequence uint64
	at       time.Time
}

// UnmarshalText reads digits as a sequence, from 1, all else as an instant.
func (p *point) UnmarshalText(text []byte) error {
	if n, err := strconv.ParseUint(string(text), 10, 64); err == nil {
		if n == 0 {
			return errors.New("sequences begin at 1")
		}
		*p = point{sequence: n}
		return nil
	}
	var at api.Instant
	if err := at.UnmarshalText(text); err != nil || at.IsZero() {
		return fmt.Errorf("%q is no sequence, and neither RFC 3339 nor YYYY-MM-DD", text)
	}
	*p = point{at: at.Time}
	return nil
}

// replaying is one run of the command.
type replaying struct {
	client *client.Client
	sel    scope.Selector
	query  client.ReplayAudit
	pacer  pacer
	write  func(api.AuditLine) error
	errs   io.Writer
	last   uint64 // sequence of the last line written
	count  int
}

// pageSize is how many effects a paced replay fetches at a time. A paced replay is
// slow, and the server ends a response that is not read in time.
const pageSize = 64

func (r *replaying) run(ctx context.Context) error {
	if r.pacer.speed > 0 {
		if err := r.pages(ctx); err != nil || !r.query.Follow || r.full() {
			return err
		}
	}
	if !r.query.Follow {
		return r.take(ctx, r.client.Replay(ctx, r.sel, r.rest()))
	}
	return r.follow(ctx)
}

// rest is what is still to be asked for.
func (r *replaying) rest() client.ReplayAudit {
	q := r.query
	q.After = max(q.After, r.last)
	if q.Limit > 0 {
		q.Limit -= r.count
	}
	return q
}

func (r *replaying) full() bool { return r.query.Limit > 0 && r.count >= r.query.Limit }

func (r *replaying) pages(ctx context.Context) error {
	for !r.full() {
		q := r.rest()
		q.Follow = false
		if q.Limit == 0 || q.Limit > pageSize {
			q.Limit = pageSize
		}
		var page []api.AuditLine
		for line, err := range r.client.Replay(ctx, r.sel, q) {
			if err != nil {
				return err
			}
			page = append(page, line)
		}
		for _, line := range page {
			if err := r.put(ctx, line); err != nil {
				return err
			}
		}
		if len(page) < q.Limit {
			return nil
		}
	}
	return nil
}

// reconnectWait is the pause before a server that went away is asked again.
const reconnectWait = time.Second

// follow goes on where it was when the server goes away. A server that refuses,
// or was never there, ends it.
func (r *replaying) follow(ctx context.Context) error {
	for known := r.count > 0; ; {
		before := r.count
		err := r.take(ctx, r.client.Replay(ctx, r.sel, r.rest()))
		known = known || r.count > before || errors.Is(err, client.ErrEnded)
		if r.full() {
			return nil
		}
		if err == nil || ctx.Err() != nil || !known || errors.As(err, new(*api.Problem)) || errors.As(err, new(*writeError)) {
			return err
		}
		_, _ = fmt.Fprintf(r.errs, "palimpsest: %v; trying again after %d\n", err, r.rest().After)
		select {
		case <-time.After(reconnectWait):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (r *replaying) take(ctx context.Context, lines iter.Seq2[api.AuditLine, error]) error {
	for line, err := range lines {
		if err != nil {
			return err
		}
		if err := r.put(ctx, line); err != nil {
			return err
		}
	}
	return nil
}

func (r *replaying) put(ctx context.Context, line api.AuditLine) error {
	if err := r.pacer.wait(ctx, committed(line)); err != nil {
		return err
	}
	if err := r.write(line); err != nil {
		return &writeError{err}
	}
	r.last = line.Sequence
	r.count++
	return nil
}

// writeError: the output takes no more.
type writeError struct{ error }

func (e *writeError) Unwrap() error { return e.error }

// committed is when an effect was; the time of its envelope where that is not
// told.
func committed(line api.AuditLine) time.Time {
	var effect struct {
		At time.Time `json:"committed_at"`
	}
	if json.Unmarshal(line.Data, &effect) != nil || effect.At.IsZero() {
		return line.Time
	}
	return effect.At
}

// lineWriter writes a line whole or not at all, as far as the output lets it.
func lineWriter(out io.Writer, format string) func(api.AuditLine) error {
	if format == "cloudevents" {
		return func(line api.AuditLine) error {
			text, err := cloudEvent(line)
			if err != nil {
				return err
			}
			_, err = out.Write(append(text, '\n'))
			return err
		}
	}
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	return func(line api.AuditLine) error { return enc.Encode(line) }
}

func cloudEvent(line api.AuditLine) ([]byte, error) {
	s, err := scope.ParseKey(line.Project, line.Subject)
	if err != nil {
		return nil, fmt.Errorf("effect %d: %w", line.Sequence, err)
	}
	return events.EncodeStructured(events.Meta{
		ID: line.ID, Source: line.Source, Kind: events.Kind(line.Type), Scope: s, Time: line.Time, CorrelationID: line.CorrelationID,
		CausationID: line.CausationID, Traceparent: line.Traceparent, Sequence: line.Sequence,
	}, line.Data)
}
