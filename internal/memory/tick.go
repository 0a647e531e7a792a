package memory

import (
	"context"
	"fmt"

	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// Bounds of a tick.
type Bounds struct {
	Episodes int // at most [events.MaxTickEpisodes]
	Tokens   int // a token is taken to be four bytes
}

// DefaultBounds returns the bounds of a tick that apply unless configured.
func DefaultBounds() Bounds { return Bounds{Episodes: events.MaxTickEpisodes, Tokens: 64_000} }

// bytesPerToken is a low estimate for any tokenizer and language.
const bytesPerToken = 4

// fitChunk episodes are read at a time, to bound memory: they may be large.
const fitChunk = 25

// Fit bounds the range of a tick; one episode always fits. read returns the episodes of
// a range. With split, for the rule that [Answering] names, the range ends before an
// episode that asks for something else than its first one.
func Fit(
	ctx context.Context, read func(context.Context, scope.Scope, events.Range) ([]Episode, error),
	fact scope.Scope, r events.Range, most Bounds, split bool,
) (events.Range, error) {
	r = Cut(r, most.Episodes)
	left := most.Tokens * bytesPerToken
	var first Asked
	for from := r.From; r.Len() > 1 && from < r.To; {
		chunk := Cut(events.Range{From: from, To: r.To}, fitChunk)
		episodes, err := read(ctx, fact, chunk)
		if err != nil {
			return r, fmt.Errorf("measure range: %w", err)
		}
		if from == r.From {
			first = AskedAt(episodes, from+1)
		}
		for _, e := range episodes {
			left -= len(e.Content)
			if left < 0 || split && e.Asked() != first {
				r.To = max(e.Ordinal-1, r.From+1)
				return r, nil
			}
		}
		from = chunk.To
	}
	return r, nil
}

// Cut bounds a range to n ordinals.
func Cut(r events.Range, n int) events.Range {
	if most := uint64(n); r.Len() > most {
		r.To = r.From + most
	}
	return r
}

// EndsIn returns the session ends that a tick of r over a range carries. Whatever made
// the rule due, they belong to it: the watermark passes them, and no later tick would.
//
// An end whose last ordinal the watermark passed before the session ended (by
// count or cron) is carried by none. Nothing is lost by it: the store has the
// end from ingest, everything that was said is consolidated, and an effect's
// ends only inform a store that is rebuilt. A decider that holds candidates
// until a session's end would need these ends too, in a tick of their own.
func EndsIn(r Rule, ends []events.SessionEnd, over events.Range) []events.SessionEnd {
	var in []events.SessionEnd
	for _, e := range ends {
		if r.Cadence.SessionEnd && e.LastOrdinal > over.From && e.LastOrdinal <= over.To {
			in = append(in, e)
		}
	}
	return in
}

// TickOf returns the tick of a rule over a range of a scope, with the ends that it
// carries, see [EndsIn].
func TickOf(state State, r Rule, over events.Range, carried []events.SessionEnd, cause events.Cause) events.TickIssued {
	return events.TickIssued{
		Batch: events.Batch{
			Header: events.Header{Scope: state.Scope, Incarnation: state.Incarnation},
			Rule:   r.ID, Class: r.Class, Range: over, Cause: cause, New: state.Revision == 0,
		},
		SessionEnds: carried,
	}
}

// HandOver hands a tick whose first episode asks for a tick of its own to the rule of
// requests.
func HandOver(t *events.TickIssued, requested Rule, first Asked) {
	t.As, t.Class, t.Cause, t.Prompt = requested.ID, requested.Class, events.CauseRequest, first.Prompt
}
