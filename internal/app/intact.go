package app

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"palimpsest/internal/auth"
	"palimpsest/internal/recovery"
	"palimpsest/internal/topology"
)

// compareStreams looks whether EPISODES or AUDIT lacks the end that the stores
// have. Then the process runs, and is not ready.
func (h *process) compareStreams(ctx context.Context) error {
	var positions []recovery.Position
	if held, ok := h.store.(interface {
		Newest(ctx context.Context) (episode, effect uint64, err error)
	}); ok {
		episode, effect, err := held.Newest(ctx)
		if err != nil {
			return fmt.Errorf("compare the memory store with the streams: %w", err)
		}
		positions = append(positions,
			recovery.Position{Stream: topology.StreamEpisodes, Holder: "memory store", Held: episode},
			recovery.Position{Stream: topology.StreamAudit, Holder: "memory store", Held: effect})
	}
	if h.auditLog != nil {
		last, err := h.auditLog.LastSequence(ctx)
		if err != nil {
			h.log.Warn("look for the end of the audit log", "error", err) // it may be away for a while
		}
		positions = append(positions, recovery.Position{Stream: topology.StreamAudit, Holder: "audit log", Held: last})
	}
	for i, p := range positions {
		var err error
		if positions[i].Extent, err = extent(ctx, h.streams.JetStream(), p.Stream); err != nil {
			return err
		}
	}
	if short := recovery.Intact(positions...); short != nil {
		what := strings.ReplaceAll(short.Error(), "\n", "; ")
		h.short = &userError{fmt.Sprintf("%s; stop Palimpsest and run \"palimpsest rebuild --data %s\", which keeps what the stores have", what, h.cfg.Data), short}
		h.log.Error("a stream was lost or cut short", "error", h.short)
	}
	return nil
}

// intact is an error while a stream lacks what the stores have, or the bucket of
// API keys is lost.
func (h *process) intact(context.Context) (map[string]any, error) {
	return nil, errors.Join(h.short, h.keysLost())
}

// keysLost is an error while keys are needed and the bucket that had them is empty.
func (h *process) keysLost() error {
	if h.gate == nil || h.gate.Mode == auth.Off {
		return nil
	}
	return h.gate.Ring.Whole()
}
