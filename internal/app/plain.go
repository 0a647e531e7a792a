package app

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"syscall"

	"palimpsest/internal/audit"
	"palimpsest/internal/broker"
	"palimpsest/internal/store"
)

// plain says what a user can do something about in the words of the user: the
// setting, its value, and what is wrong with it. Whatever else fails keeps the
// words of its room.
func plain(cfg Config, err error) error {
	is := func(targets ...error) bool {
		for _, target := range targets {
			if errors.Is(err, target) {
				return true
			}
		}
		return false
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
		return &userError{fmt.Sprintf("nats.listen: %s: %v", cfg.NATS.Listen, reason(err)), err}
	}
	if listen := (*net.OpError)(nil); errors.As(err, &listen) && listen.Op == "listen" {
		return &userError{fmt.Sprintf("http.listen: %s: %v", cfg.HTTP.Listen, reason(err)), err}
	}
	if path := (*fs.PathError)(nil); errors.As(err, &path) || is(broker.ErrDirectory) {
		return &userError{fmt.Sprintf("data: %s cannot be used: %v", cfg.Data, reason(err)), err}
	}
	return err
}

// reason is what the operating system said, without the call that failed.
func reason(err error) error {
	var number syscall.Errno
	if errors.As(err, &number) {
		return number
	}
	return err
}

// userError is an error in the words of the user.
type userError struct {
	text string
	err  error
}

func (e *userError) Error() string { return e.text }

func (e *userError) Unwrap() error { return e.err }
