package app

import (
	"context"
	"errors"

	"palimpsest/internal/broker"
	"palimpsest/internal/pipeline"
	"palimpsest/internal/topology"
	"palimpsest/pkg/events"
)

// buriedPage is how many letters are looked at together.
const buriedPage = 100

// unbury hands the audit log again the effects that were buried on their way into
// it. Its end has gone past them since, so that nothing else would: until then
// the letter alone tells of the hole. What is whole again needs no letter, unless
// it may have been buried on its way into the memory store and lack there: behind
// before, the newest letter before that was healed, others may have buried it
// since.
func (h *house) unbury(ctx context.Context, before uint64) (copied int, err error) {
	if _, behind := h.healing.ready(ctx); behind != nil {
		before = 0
	}
	letters, journal := h.runtime.Letters(), broker.NewJournal(h.streams.JetStream())
	for after := uint64(0); ; {
		page, next, err := letters.List(ctx, pipeline.LetterFilter{Service: h.consolidator.Name()}, after, buriedPage)
		if err != nil {
			return copied, err
		}
		for _, l := range page {
			whole, err := h.copyAgain(ctx, letters, journal, l)
			if err != nil {
				return copied, err
			}
			if !whole {
				continue
			}
			copied++
			if l.Sequence > before {
				continue
			}
			if err := letters.Drop(ctx, l.Sequence); err != nil && !errors.Is(err, pipeline.ErrNoLetter) {
				return copied, err
			}
		}
		if after = next; after == 0 {
			return copied, nil
		}
	}
}

// copyAgain reports whether the audit log has the effect of a letter now. Where
// AUDIT does not hold that effect, or the log refuses it, the letter is all that
// there is to say.
func (h *house) copyAgain(ctx context.Context, letters *pipeline.Letters, journal *broker.Journal, l pipeline.Letter) (whole bool, err error) {
	if l.MessageKind != events.KindEffectCommitted || l.Stream != topology.StreamAudit {
		return false, nil
	}
	if stands, err := letters.Stands(ctx, l); err != nil || !stands {
		return false, err
	}
	found, err := h.consolidator.CopyOne(ctx, journal, l.MessageBuried.Sequence)
	if pipeline.IsReject(err) || errors.As(err, new(*events.FieldError)) {
		return false, nil
	}
	return found, err
}
