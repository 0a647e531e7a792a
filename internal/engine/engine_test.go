package engine_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"syscall"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"palimpsest/internal/engine"
	"palimpsest/internal/store"
)

func TestUnusableNamesTheSettingAndNoSecret(t *testing.T) {
	t.Parallel()
	_, unparsed := url.Parse("nats://u:hun%zzter2@h:1") //nolint:staticcheck // it is none
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	for want, err := range map[string]error{
		"env X: memory: redis://h:1 cannot be reached: connection refused":                                fmt.Errorf("connect: %w", refused),
		"env X: memory: redis://h:1 cannot be reached: the server does not answer":                        context.DeadlineExceeded,
		"env X: memory: redis://h:1: it is no URL; a password may need escapes, as %25 for %":             fmt.Errorf("connect: %w", unparsed),
		"env X: memory: redis://h:1: the server has no Query Engine (RediSearch), which Redis 8 has, yet": errors.New("the server has no Query Engine (RediSearch), which Redis 8 has, yet"),
	} {
		got := engine.Unusable("env X", "memory", "redis://h:1", err)
		if got.Error() != want || !errors.Is(got, err) || !engine.Correctable(got) {
			t.Errorf("%v, want %s", got, want)
		}
		if strings.Contains(got.Error(), "ter2") {
			t.Errorf("%v shows the password", got)
		}
	}
}

func TestAwaitEndsWithWhatDoesNotPass(t *testing.T) {
	t.Parallel()
	away, wrong := fmt.Errorf("open: %w", store.ErrAway), errors.New("wrong password")
	tries, told := []error{away, away, wrong}, 0
	err := engine.Await(t.Context(), engine.Away, func(error) { told++ }, func() error {
		err := tries[0]
		tries = tries[1:]
		return err
	})
	if !errors.Is(err, wrong) || told != 1 || len(tries) > 0 {
		t.Errorf("%v, told %d times, %d tries left", err, told, len(tries))
	}
	ctx, cancel := context.WithCancel(t.Context())
	if err := engine.Await(ctx, engine.Away, func(error) { cancel() }, func() error { return away }); err != nil {
		t.Errorf("after the end: %v", err)
	}
}

func TestAwayIsAServerOfStreamsThatStopsOrStarts(t *testing.T) {
	t.Parallel()
	for _, err := range []error{
		nats.ErrReconnectBufExceeded, jetstream.ErrServerShutdown, &jetstream.APIError{Code: 503, ErrorCode: 10008},
	} {
		if !engine.Away(fmt.Errorf("look for readers: %w", err)) {
			t.Errorf("%v passes", err)
		}
	}
	if err := (&jetstream.APIError{Code: 404, ErrorCode: jetstream.JSErrCodeStreamNotFound}); engine.Away(err) {
		t.Errorf("%v does not pass", err)
	}
}
