// Package engine waits for engines, which are the servers and files that settings name,
// closes them, and rewrites their errors: an error names the setting to correct.
package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"syscall"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"palimpsest/internal/store"
)

// AwayLimit bounds how long a start waits for a server that is away, perhaps because
// it starts too; awayAgain is the pause between attempts.
const (
	AwayLimit = 30 * time.Second
	awayAgain = 500 * time.Millisecond
)

// Await calls try until it returns nil or an error that does not pass: a server that
// is away may come. It calls told with the first error. An attempt that lasted longer
// than the limit, because it worked for a while, restarts the wait. Await returns nil
// where ctx ends.
func Await(ctx context.Context, passes func(error) bool, told func(error), try func() error) error {
	ticker := time.NewTicker(awayAgain)
	defer ticker.Stop()
	for gone := (time.Time{}); ; {
		began := time.Now()
		err := try()
		if err == nil || !passes(err) {
			return err
		}
		if gone.IsZero() || time.Since(began) > AwayLimit {
			gone = time.Now()
			told(err)
		}
		if time.Since(gone) > AwayLimit {
			return err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// jsTemporarilyUnavailable is the code of a server whose JetStream starts.
const jsTemporarilyUnavailable = 10008

// Away reports whether err says that a server cannot be reached, or not yet used.
func Away(err error) bool {
	for _, target := range []error{
		store.ErrAway, io.EOF, io.ErrUnexpectedEOF,
		nats.ErrNoResponders, nats.ErrTimeout, nats.ErrDisconnected, nats.ErrConnectionReconnecting, nats.ErrReconnectBufExceeded,
		jetstream.ErrServerShutdown, jetstream.ErrNoStreamResponse, jetstream.ErrAsyncPublishTimeout, jetstream.ErrTooManyStalledMsgs,
	} {
		if errors.Is(err, target) {
			return true
		}
	}
	if refused := (*jetstream.APIError)(nil); errors.As(err, &refused) && refused.ErrorCode == jsTemporarilyUnavailable {
		return true
	}
	call := (*net.OpError)(nil)
	return errors.As(err, &call) && call.Op != "listen"
}

// Reason is the cause of a failed call alone: the driver's words around it are
// left out.
func Reason(err error) error {
	var number syscall.Errno
	if errors.As(err, &number) {
		return number
	}
	if unknown := (*net.DNSError)(nil); errors.As(err, &unknown) {
		return fmt.Errorf("lookup %s: %s", unknown.Name, unknown.Err)
	}
	if call := (*net.OpError)(nil); errors.As(err, &call) && call.Err != nil {
		return call.Err
	}
	if text := (*url.Error)(nil); errors.As(err, &text) && text.Op == "parse" { // it holds the password
		return errors.New("it is no URL; a password may need escapes, as %25 for %")
	}
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("the server closed the connection")
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, nats.ErrTimeout):
		return errors.New("the server does not answer")
	}
	return err
}

// Error is an error in the words of the user: it names a setting that the user can
// correct.
type Error struct {
	Text string
	Err  error // nil for none
}

func (e *Error) Error() string { return e.Text }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Faultf is an error in the words of the user, with a cause.
func Faultf(err error, format string, args ...any) error {
	return &Error{fmt.Sprintf(format, args...), err}
}

// Unusable says what is wrong with the server that a setting names: the origin of the
// setting, empty for a default, the setting, the URL without its password, and the cause.
func Unusable(origin, setting, address string, err error) error {
	if origin != "" {
		setting = origin + ": " + setting
	}
	if Away(err) || errors.Is(err, context.DeadlineExceeded) {
		address += " cannot be reached"
	}
	return Faultf(err, "%s: %s: %v", setting, address, Reason(err))
}

// Correctable reports whether err names a setting that the user can correct.
func Correctable(err error) bool { return errors.As(err, new(*Error)) }
