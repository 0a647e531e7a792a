package app

import (
	"context"
	"errors"

	"palimpsest/internal/broker"
	"palimpsest/internal/pipeline"
	"palimpsest/pkg/events"
)

// buriedPage is how many letters are looked at together.
const buriedPage = 100

// unbury hands the audit log again the effects that were buried on their way into
// it. Its end has gone past them since, so that nothing else would: until then
// the letter alone tells of the hole. What is whole again needs no letter, unless
// it may have been buried on its way into a memory store that is behind.
func (h *house) unbury(ctx context.Context) (copied int, err error) {
	_, behind := h.healing.ready(ctx)
	letters, journal := h.runtime.Letters(), broker.NewJournal(h.streams.JetStream())
	for after := uint64(0); ; {
		page, next, err := letters.List(ctx, pipeline.LetterFilter{Service: h.consolidator.Name()}, after, buriedPage)
		if err != nil {
			return copied, err
		}
		for _, l := range page {
			if l.MessageKind != events.KindEffectCommitted || l.Stream != broker.StreamAudit {
				continue
			}
			switch found, err := h.consolidator.CopyOne(ctx, journal, l.MessageBuried.Sequence); {
			case pipeline.IsReject(err) || errors.As(err, new(*events.FieldError)) || err == nil && !found:
				continue // the letter is all that there is to say
			case err != nil:
				return copied, err
			}
			copied++
			if behind != nil {
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
