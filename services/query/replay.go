package query

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"iter"
	"mime"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"palimpsest/internal/audit"
	"palimpsest/internal/filter"
	"palimpsest/internal/lex"
	"palimpsest/pkg/api"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// clockSpread bounds the difference between the clocks of the broker and of the
// process that commits. A replay by instants begins and ends in AUDIT by that much
// earlier and later, and then compares the time of each effect.
const clockSpread = time.Hour

type auditInput struct {
	SelectorParams
	After       uint64   `query:"after" doc:"Resume behind this sequence; from the beginning unless given."`
	Until       uint64   `query:"until" doc:"The last sequence to send; all that are committed unless given."`
	From        string   `query:"from" doc:"Only what was committed then or later: RFC 3339 or YYYY-MM-DD."`
	To          string   `query:"to" doc:"Only what was committed before: RFC 3339 or YYYY-MM-DD."`
	Kinds       []string `query:"kind,explode" doc:"Only effects that hold a delta of one of these kinds; they are sent whole." enum:"add,update,delete,noop"`
	Filters     string   `query:"filters" doc:"Only effects that hold a delta that matches, of one of the kinds; they are sent whole. A filter: {field, operator, value}, {AND: […]}, {OR: […]} or {NOT: …}. Operators: eq, ne, gt, gte, lt, lte, in, nin, contains, icontains, exists. Fields: those of audit records."`
	Limit       int      `query:"limit" doc:"Lines at most; all unless given." minimum:"0"`
	Accept      string   `header:"Accept" doc:"text/event-stream follows what is committed later, unless until or to bounds it."`
	LastEventID string   `header:"Last-Event-ID" doc:"As after, which it overrides: what a browser sends to resume."`

	remote string // address of the caller
}

// Resolve implements [huma.Resolver].
func (in *auditInput) Resolve(c huma.Context) []error {
	in.remote = c.RemoteAddr()
	if host, _, err := net.SplitHostPort(in.remote); err == nil {
		in.remote = host
	}
	return in.SelectorParams.Resolve(c)
}

func (s *Service) audit(ctx context.Context, in *auditInput) (*huma.StreamResponse, error) {
	r, err := s.replay(in)
	if err != nil {
		return nil, err
	}
	follow := wantsEvents(in.Accept)
	effects, err := s.effects(ctx, r, follow && r.endless())
	if err != nil {
		return nil, err
	}
	if follow {
		return s.sendEvents(in.remote, effects)
	}
	return s.lines(func(ctx context.Context, write func(any) error) error {
		for e, err := range effects(ctx) {
			if err != nil {
				return err
			}
			line, err := auditLine(e)
			if err != nil {
				return err
			}
			if err := write(line); err != nil {
				return err
			}
		}
		return nil
	}), nil
}

// replay is which effects are asked for.
type replay struct {
	sel          scope.Selector
	after, until uint64 // until is 0 where it bounds nothing
	from, to     time.Time
	matching     filter.Expr // of one of the records; nil for all
	limit        int
}

func (s *Service) replay(in *auditInput) (r replay, err error) {
	r = replay{after: in.After, until: in.Until, limit: in.Limit}
	if in.LastEventID != "" {
		if r.after, err = strconv.ParseUint(in.LastEventID, 10, 64); err != nil {
			return r, invalid("Last-Event-ID", "%q is not a sequence", lex.Clip(in.LastEventID))
		}
	}
	if r.from, err = instant("from", in.From); err != nil {
		return r, err
	}
	if r.to, err = instant("to", in.To); err != nil {
		return r, err
	}
	if r.matching, err = readFilters([]byte(in.Filters), filter.Audit); err != nil {
		return r, err
	}
	if len(in.Kinds) > 0 {
		r.matching = filter.Both(filter.OneOf(filter.Audit, "kind", in.Kinds...), r.matching)
	}
	r.sel, err = s.factSelector(in.SelectorParams)
	return r, err
}

// endless: nothing that is asked for says where the replay ends.
func (r replay) endless() bool { return r.until == 0 && r.to.IsZero() }

// holds reports whether an effect is asked for.
func (r replay) holds(e events.Event[events.EffectCommitted]) bool {
	at := e.Data.CommittedAt
	if at.Before(r.from) || !r.to.IsZero() && !at.Before(r.to) {
		return false
	}
	return audit.Holds(e, r.matching)
}

// past reports whether neither an effect nor what follows it is asked for.
func (r replay) past(e events.Event[events.EffectCommitted]) bool {
	return r.until > 0 && e.Sequence > r.until || !r.to.IsZero() && e.Arrived.After(r.to.Add(clockSpread))
}

// effects finds where a replay begins, and returns how to read it. What AUDIT
// has dropped comes from the audit log; where that lacks some of it, the error
// says where the replay can begin.
func (s *Service) effects(ctx context.Context, r replay, follow bool) (func(context.Context) iter.Seq2[events.Event[events.EffectCommitted], error], error) {
	if !r.from.IsZero() {
		begin, err := s.deps.Journal.Begin(ctx)
		if err != nil {
			return nil, err
		}
		since, err := s.deps.Journal.Since(ctx, r.from.Add(-clockSpread))
		if err != nil {
			return nil, err
		}
		if since+1 > begin { // else what was asked for may have been dropped
			r.after = max(r.after, since)
		}
	}
	kept, err := s.kept(ctx, r.after)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) iter.Seq2[events.Event[events.EffectCommitted], error] {
		return r.narrow(s.read(ctx, r, kept, follow))
	}, nil
}

// kept is the last sequence that AUDIT may lack. Where a replay goes on before it,
// the audit log must have what is in between.
func (s *Service) kept(ctx context.Context, after uint64) (uint64, error) {
	begin, err := s.deps.Journal.Begin(ctx)
	kept := max(begin, 1) - 1
	if err != nil || after >= kept {
		return kept, err
	}
	last, err := s.deps.Log.LastSequence(ctx)
	if err == nil && last < kept {
		err = api.NewProblem(http.StatusGone, api.CodeTrimmed, "after",
			"AUDIT begins at %d, and the audit log has what came before up to %d alone; resume with after=%d", begin, last, kept)
	}
	return kept, err
}

// read joins what the audit log has up to kept to what AUDIT has behind it. AUDIT
// may drop more while either is read: that comes from the log, too.
func (s *Service) read(ctx context.Context, r replay, kept uint64, follow bool) iter.Seq2[events.Event[events.EffectCommitted], error] {
	return func(yield func(events.Event[events.EffectCommitted], error) bool) {
		stream := s.deps.Journal.Read
		if follow {
			stream = s.deps.Journal.Follow
		}
		for after := r.after; ; {
			var err error
			for after < kept {
				for e, err := range s.deps.Log.Between(ctx, r.sel, after, kept, r.matching) {
					if !yield(e, err) || err != nil {
						return
					}
				}
				after = kept
				if kept, err = s.kept(ctx, after); err != nil {
					yield(events.Event[events.EffectCommitted]{}, err)
					return
				}
			}
			at, trimmed := forward(stream(ctx, r.sel, after), after, yield)
			if trimmed == nil {
				return
			}
			if kept, err = s.kept(ctx, at); err != nil || kept <= after {
				yield(events.Event[events.EffectCommitted]{}, cmp.Or(err, trimmed))
				return
			}
			after = at
		}
	}
}

// forward yields effects until there are no more, or until AUDIT has dropped the
// next: then it returns where the last stood, and the error.
func forward(
	effects iter.Seq2[events.Event[events.EffectCommitted], error], at uint64, yield func(events.Event[events.EffectCommitted], error) bool,
) (uint64, error) {
	for e, err := range effects {
		if errors.Is(err, audit.ErrTrimmed) {
			return at, err
		}
		if !yield(e, err) || err != nil {
			break
		}
		at = e.Sequence
	}
	return at, nil
}

// narrow leaves out what is not asked for.
func (r replay) narrow(all iter.Seq2[events.Event[events.EffectCommitted], error]) iter.Seq2[events.Event[events.EffectCommitted], error] {
	return func(yield func(events.Event[events.EffectCommitted], error) bool) {
		n := 0
		for e, err := range all {
			switch {
			case err != nil:
				yield(e, err)
				return
			case r.past(e):
				return
			case !r.holds(e):
				continue
			}
			if n++; !yield(e, nil) || n == r.limit {
				return
			}
		}
	}
}

func auditLine(e events.Event[events.EffectCommitted]) (api.AuditLine, error) {
	data, err := json.Marshal(e.Data)
	return api.AuditLine{
		Sequence: e.Sequence, ID: e.ID, Type: string(e.Kind), Source: e.Source, Time: e.Time, Project: e.Scope.Project, Subject: e.Scope.Key(),
		CorrelationID: e.CorrelationID, CausationID: e.CausationID, Traceparent: e.Traceparent, Data: data,
	}, err
}

// wantsEvents reports whether a client takes server-sent events.
func wantsEvents(accept string) bool {
	for kind := range strings.SplitSeq(accept, ",") {
		if media, _, err := mime.ParseMediaType(kind); err == nil && media == eventStream {
			return true
		}
	}
	return false
}
