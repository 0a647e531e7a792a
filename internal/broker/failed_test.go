package broker

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
)

// TestSlowReaderIsNoError: the reader reads dropped messages again.
func TestSlowReaderIsNoError(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(&out, nil))
	c := ConnectConfig{Name: "rebuild"}
	c.failed(log, &nats.Subscription{Subject: "_INBOX"}, nats.ErrSlowConsumer)
	if out.Len() > 0 {
		t.Errorf("logged %s", &out)
	}
	c.failed(log, nil, nats.ErrPermissionViolation)
	if !strings.Contains(out.String(), "level=ERROR") {
		t.Errorf("logged %s", &out)
	}
}
