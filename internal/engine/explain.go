package engine

import (
	"errors"
	"io/fs"
	"net"
	"slices"

	"palimpsest/internal/audit"
	"palimpsest/internal/broker"
	"palimpsest/internal/store"
)

// Settings are values of the configuration that errors name.
type Settings struct {
	Data       string // the data directory
	MemoryFile bool   // the memory store is a file of Data
	NATS, HTTP string // the addresses to listen on
}

// Explain rewrites an error that the user can correct: it names the setting, its value
// and the fault. It returns other errors as they are.
func (s Settings) Explain(err error) error {
	is := func(targets ...error) bool {
		return slices.ContainsFunc(targets, func(target error) bool { return errors.Is(err, target) })
	}
	switch {
	case err == nil || Correctable(err):
		return err
	case is(store.ErrLocked) && !s.MemoryFile:
		// Without the cause: the data directory is not in use.
		return Faultf(nil, "a rebuild of the memory store, or an erasure from it, is under way")
	case InUse(err):
		return Faultf(err, "data: %s is in use by another process", s.Data)
	case is(store.ErrNewer, audit.ErrNewer):
		return Faultf(err, "data: %s was written by a newer version of Palimpsest", s.Data)
	case is(store.ErrDamaged) && s.MemoryFile:
		return Faultf(err, "data: the memory store in %s is damaged; \"palimpsest rebuild --data %s\" rebuilds it from the streams (%v)", s.Data, s.Data, err)
	case is(broker.ErrPort):
		return Faultf(err, "nats.listen: %s: %v", s.NATS, Reason(err))
	}
	if listen := (*net.OpError)(nil); errors.As(err, &listen) && listen.Op == "listen" {
		return Faultf(err, "http.listen: %s: %v", s.HTTP, Reason(err))
	}
	if path := (*fs.PathError)(nil); errors.As(err, &path) || is(broker.ErrDirectory) {
		return Faultf(err, "data: %s cannot be used: %v", s.Data, Reason(err))
	}
	return err
}

// InUse reports whether err says that another process uses a data directory.
func InUse(err error) bool {
	return errors.Is(err, store.ErrLocked) || errors.Is(err, audit.ErrLocked) || errors.Is(err, broker.ErrInUse)
}
