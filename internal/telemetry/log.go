package telemetry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"go.opentelemetry.io/otel/trace"
)

// LogConfig says what is logged, and how.
type LogConfig struct {
	Level  string // debug, info, warn, error
	Format string // text, json
}

// DefaultLog is text from level info on.
func DefaultLog() LogConfig { return LogConfig{Level: "info", Format: "text"} }

// Validate names every setting that cannot be used.
func (c LogConfig) Validate() error {
	_, err := c.level()
	if c.Format != "text" && c.Format != "json" {
		err = errors.Join(err, fmt.Errorf("log.format: %q is neither text nor json", c.Format))
	}
	return err
}

func (c LogConfig) level() (slog.Level, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(strings.ToUpper(c.Level))); err != nil {
		return level, fmt.Errorf("log.level: %q is none of debug, info, warn, error", c.Level)
	}
	return level, nil
}

// New returns a logger to w, by settings that Validate accepts.
func (c LogConfig) New(w io.Writer) *slog.Logger {
	level, _ := c.level()
	options := &slog.HandlerOptions{Level: level}
	if c.Format == "json" {
		return slog.New(logHandler{slog.NewJSONHandler(w, options)})
	}
	return slog.New(logHandler{slog.NewTextHandler(w, options)})
}

// logHandler adds trace_id and span_id to the records of traced work.
type logHandler struct{ slog.Handler }

// Handle implements [slog.Handler].
func (h logHandler) Handle(ctx context.Context, r slog.Record) error {
	if of := trace.SpanContextFromContext(ctx); of.IsValid() {
		r = r.Clone()
		r.AddAttrs(slog.String("trace_id", of.TraceID().String()), slog.String("span_id", of.SpanID().String()))
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements [slog.Handler].
func (h logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return logHandler{h.Handler.WithAttrs(attrs)}
}

// WithGroup implements [slog.Handler].
func (h logHandler) WithGroup(name string) slog.Handler {
	return logHandler{h.Handler.WithGroup(name)}
}
