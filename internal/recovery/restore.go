package recovery

import (
	"errors"
	"log/slog"
	"time"

	"palimpsest/services/consolidator"
)

// Restore rebuilds a memory store before a start, and logs why and with what result.
// Where the streams lack or lost messages, it returns nil: the process starts with the
// present store, and readiness says what is missing.
func Restore(why string, log *slog.Logger, rebuild func() (Rebuilt, error)) error {
	began := time.Now()
	log.Warn("rebuild the memory store from the streams", "because", why)
	out, err := rebuild()
	switch {
	case errors.As(err, new(*consolidator.GapError)), errors.Is(err, consolidator.ErrAhead), errors.As(err, new(*LossError)):
		log.Error("the memory store cannot be rebuilt", "error", err)
		return nil
	case err != nil:
		return err
	}
	log.Warn("the memory store was rebuilt", "episodes", out.Episodes, "effects", out.Effects, "scopes", out.Scopes, "took", time.Since(began))
	return nil
}
