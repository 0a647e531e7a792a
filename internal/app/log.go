package app

import (
	"io"
	"log/slog"

	"palimpsest/internal/telemetry"
)

func newLogger(c Log, w io.Writer) *slog.Logger {
	level, err := c.level()
	if err != nil {
		level = slog.LevelInfo // Validate has refused it before
	}
	options := &slog.HandlerOptions{Level: level}
	if c.Format == "json" {
		return slog.New(telemetry.LogHandler(slog.NewJSONHandler(w, options)))
	}
	return slog.New(telemetry.LogHandler(slog.NewTextHandler(w, options)))
}
