package journal

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"sort"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"palimpsest/internal/audit"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// effects is a sequence of effects or the error that ended it.
type effects = iter.Seq2[events.Event[events.EffectCommitted], error]

// ReadScope implements [audit.Reader].
func (j *Journal) ReadScope(ctx context.Context, fact scope.Scope, after uint64) effects {
	if err := fact.Validate(); err != nil {
		return failed(err)
	}
	return j.read(ctx, reader{filter: filterOf(scope.Exactly(fact)), at: after})
}

// Read implements [audit.Reader].
func (j *Journal) Read(ctx context.Context, sel scope.Selector, after uint64) effects {
	if err := sel.Validate(); err != nil {
		return failed(err)
	}
	return j.read(ctx, reader{filter: filterOf(sel), at: after, watch: true})
}

// Follow implements [audit.Stream].
func (j *Journal) Follow(ctx context.Context, sel scope.Selector, after uint64) effects {
	if err := sel.Validate(); err != nil {
		return failed(err)
	}
	return j.read(ctx, reader{filter: filterOf(sel), at: after, end: math.MaxUint64, watch: true})
}

// All implements [audit.TailReader].
func (j *Journal) All(ctx context.Context, after uint64) effects {
	return j.read(ctx, reader{filter: allEffects, at: after})
}

// Begin implements [audit.RebuildReader].
func (j *Journal) Begin(ctx context.Context) (uint64, error) {
	first, _, err := j.extent(ctx)
	if err != nil {
		return 0, fmt.Errorf("read journal: %w", err)
	}
	return first, nil
}

// extent is the first sequence that AUDIT may hold, and the last that it held.
func (j *Journal) extent(ctx context.Context) (first, last uint64, err error) {
	stream, err := j.bind(ctx)
	if err != nil {
		return 0, 0, err
	}
	info, err := stream.Info(ctx)
	if err != nil {
		return 0, 0, err
	}
	return info.State.FirstSeq, info.State.LastSeq, nil
}

// Since implements [audit.Stream] by halving what AUDIT holds.
func (j *Journal) Since(ctx context.Context, at time.Time) (uint64, error) {
	after, err := j.since(ctx, at)
	if err != nil {
		return 0, fmt.Errorf("read journal since %s: %w", at.Format(time.RFC3339), err)
	}
	return after, nil
}

func (j *Journal) since(ctx context.Context, at time.Time) (uint64, error) {
	first, last, err := j.extent(ctx)
	if err != nil {
		return 0, err
	}
	stream, err := j.bind(ctx)
	if err != nil {
		return 0, err
	}
	var failed error
	found := sort.Search(int(last+1-first), func(i int) bool {
		if failed != nil {
			return true
		}
		msg, err := stream.GetMsg(ctx, first+uint64(i), jetstream.WithGetMsgSubject(allEffects))
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			return true
		}
		failed = err
		return err != nil || !msg.Time.Before(at)
	})
	return max(first+uint64(found), 1) - 1, failed
}

// allEffects filters what AUDIT holds of any scope.
const allEffects = "palimpsest." + events.NounAudit + ".>"

func failed(err error) effects {
	return func(yield func(events.Event[events.EffectCommitted], error) bool) {
		yield(events.Event[events.EffectCommitted]{}, fmt.Errorf("read journal: %w", err))
	}
}

// read yields what a reader reads, and the error that ended it.
func (j *Journal) read(ctx context.Context, r reader) effects {
	return func(yield func(events.Event[events.EffectCommitted], error) bool) {
		r := r // each iteration begins at its beginning
		r.journal, r.yield = j, yield
		if err := r.run(ctx); err != nil && !errors.Is(err, errStopped) {
			yield(events.Event[events.EffectCommitted]{}, fmt.Errorf("read journal after %d: %w", r.at, err))
		}
	}
}

// filterOf is the subject filter of a widening read: a level that is nil matches any
// token, one that is empty the absent token.
func filterOf(sel scope.Selector) string {
	named := scope.Scope{Project: sel.Project}
	levels := [...]struct {
		want *string
		into *string
	}{{sel.User, &named.User}, {sel.Agent, &named.Agent}, {sel.Session, &named.Session}}
	for _, l := range levels {
		if l.want != nil {
			*l.into = *l.want
		}
	}
	tokens := strings.Split(named.Tokens(), ".")
	for i, l := range levels {
		if l.want == nil {
			tokens[i+1] = "*"
		}
	}
	return "palimpsest." + events.NounAudit + "." + strings.Join(tokens, ".")
}

func errTrimmed(begin uint64) error {
	return fmt.Errorf("%w: AUDIT begins at %d", audit.ErrTrimmed, begin)
}
