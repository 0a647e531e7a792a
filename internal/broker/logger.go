package broker

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
)

// levelServerDebug is where the server's own debugging goes, below ours.
const levelServerDebug = slog.LevelDebug - 4

// serverLog passes on the server's log. The server's notices are details of its
// start, so their level here is debug. It also keeps the first fatal message,
// because the server reports in it that it cannot start.
type serverLog struct {
	to *slog.Logger

	mu    sync.Mutex
	fatal string
}

func (l *serverLog) Noticef(format string, v ...any) { l.log(slog.LevelDebug, format, v) }
func (l *serverLog) Errorf(format string, v ...any)  { l.log(slog.LevelError, format, v) }
func (l *serverLog) Debugf(format string, v ...any)  { l.log(levelServerDebug, format, v) }

// Warnf passes a warning on, but for one: anonymous is a user without a
// password, not one with a weak password.
func (l *serverLog) Warnf(format string, v ...any) {
	level := slog.LevelWarn
	if strings.HasPrefix(format, "Plaintext passwords detected") {
		level = slog.LevelDebug
	}
	l.log(level, format, v)
}

// Tracef drops the protocol trace: it would show what users say.
func (l *serverLog) Tracef(string, ...any) {}

func (l *serverLog) Fatalf(format string, v ...any) {
	l.mu.Lock()
	if l.fatal == "" {
		l.fatal = fmt.Sprintf(format, v...)
	}
	l.mu.Unlock()
	l.log(slog.LevelError, format, v)
}

// failure is the first fatal message, empty if there was none.
func (l *serverLog) failure() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.fatal
}

func (l *serverLog) log(level slog.Level, format string, v []any) {
	if ctx := context.Background(); l.to.Enabled(ctx, level) {
		l.to.Log(ctx, level, fmt.Sprintf(format, v...), "component", "nats-server")
	}
}
