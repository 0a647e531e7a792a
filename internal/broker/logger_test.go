package broker

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
)

func TestServerLog(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	l := &serverLog{to: slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: levelServerDebug}))}
	l.Noticef("notice %d", 1)
	l.Warnf("warn %d", 2)
	l.Errorf("error %d", 3)
	l.Debugf("debug %d", 4)
	l.Tracef("what alice said")
	l.Fatalf("fatal %d", 5)
	l.Fatalf("fatal %d", 6)
	if l.failure() != "fatal 5" {
		t.Errorf("failure = %q", l.failure())
	}
	for _, want := range []string{
		`level=DEBUG msg="notice 1"`, `level=WARN msg="warn 2"`, `level=ERROR msg="error 3"`, `level=DEBUG-4 msg="debug 4"`, `level=ERROR msg="fatal 5"`,
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no line %s in\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "alice") {
		t.Error("the protocol trace is logged")
	}
}
