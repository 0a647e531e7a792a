package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"syscall"

	"github.com/nats-io/nats.go"

	"palimpsest/internal/audit"
	"palimpsest/internal/broker"
	"palimpsest/internal/config"
	"palimpsest/internal/store"
)

// plain rewrites an error that the user can correct in the user's terms: the
// setting, its value and the fault. It returns other errors as they are.
func plain(cfg Config, err error) error {
	is := func(targets ...error) bool {
		for _, target := range targets {
			if errors.Is(err, target) {
				return true
			}
		}
		return false
	}
	if e := (*engineError)(nil); errors.As(err, &e) {
		return cfg.engineError(e)
	}
	switch {
	case err == nil || errors.As(err, new(*userError)):
		return err
	case is(store.ErrLocked, audit.ErrLocked, broker.ErrInUse):
		return &userError{fmt.Sprintf("data: %s is in use by another process", cfg.Data), err}
	case is(store.ErrNewer, audit.ErrNewer):
		return &userError{fmt.Sprintf("data: %s was written by a newer version of Palimpsest", cfg.Data), err}
	case is(store.ErrDamaged) && cfg.Memory == backendFile:
		return &userError{fmt.Sprintf("data: the memory store in %s is damaged; \"palimpsest rebuild --data %s\" builds it anew from the streams (%v)",
			cfg.Data, cfg.Data, err), err}
	case is(broker.ErrPort):
		return &userError{fmt.Sprintf("nats.listen: %s: %v", cfg.NATS.Listen, Reason(err)), err}
	}
	if listen := (*net.OpError)(nil); errors.As(err, &listen) && listen.Op == "listen" {
		return &userError{fmt.Sprintf("http.listen: %s: %v", cfg.HTTP.Listen, Reason(err)), err}
	}
	if path := (*fs.PathError)(nil); errors.As(err, &path) || is(broker.ErrDirectory) {
		return &userError{fmt.Sprintf("data: %s cannot be used: %v", cfg.Data, Reason(err)), err}
	}
	return err
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
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("the server closed the connection")
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, nats.ErrTimeout):
		return errors.New("the server does not answer")
	}
	return err
}

// engineError says what is wrong with an engine that a setting names.
type engineError struct {
	setting string
	err     error
}

func (e *engineError) Error() string { return e.setting + ": " + e.err.Error() }

func (e *engineError) Unwrap() error { return e.err }

// engineError names the origin of the setting, the setting and the address.
func (c Config) engineError(e *engineError) error {
	where := ""
	if origin := c.origin(e.setting); origin != "" {
		where = origin + ": "
	}
	url := config.MaskURL(c.engine(e.setting))
	if away(e.err) || errors.Is(e.err, context.DeadlineExceeded) {
		return &userError{fmt.Sprintf("%s%s: %s cannot be reached: %v", where, e.setting, url, Reason(e.err)), e.err}
	}
	return &userError{fmt.Sprintf("%s%s: %s: %v", where, e.setting, url, Reason(e.err)), e.err}
}

// userError is an error in the words of the user.
type userError struct {
	text string
	err  error
}

func (e *userError) Error() string { return e.text }

func (e *userError) Unwrap() error { return e.err }

// Correctable reports whether err names a setting that the user can correct.
func Correctable(err error) bool { return errors.As(err, new(*userError)) }
