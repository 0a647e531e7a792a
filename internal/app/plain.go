package app

import (
	"errors"
	"io/fs"
	"net"

	"palimpsest/internal/audit"
	"palimpsest/internal/broker"
	"palimpsest/internal/config"
	"palimpsest/internal/engine"
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
	switch {
	case err == nil || engine.Correctable(err):
		return err
	case is(store.ErrLocked, audit.ErrLocked, broker.ErrInUse):
		return engine.Faultf(err, "data: %s is in use by another process", cfg.Data)
	case is(store.ErrNewer, audit.ErrNewer):
		return engine.Faultf(err, "data: %s was written by a newer version of Palimpsest", cfg.Data)
	case is(store.ErrDamaged) && cfg.Memory == backendFile:
		return engine.Faultf(err, "data: the memory store in %s is damaged; \"palimpsest rebuild --data %s\" builds it anew from the streams (%v)",
			cfg.Data, cfg.Data, err)
	case is(broker.ErrPort):
		return engine.Faultf(err, "nats.listen: %s: %v", cfg.NATS.Listen, engine.Reason(err))
	}
	if listen := (*net.OpError)(nil); errors.As(err, &listen) && listen.Op == "listen" {
		return engine.Faultf(err, "http.listen: %s: %v", cfg.HTTP.Listen, engine.Reason(err))
	}
	if path := (*fs.PathError)(nil); errors.As(err, &path) || is(broker.ErrDirectory) {
		return engine.Faultf(err, "data: %s cannot be used: %v", cfg.Data, engine.Reason(err))
	}
	return err
}

// unusable says what is wrong with the engine that a setting names.
func (c Config) unusable(key string, err error) error {
	return engine.Unusable(c.origin(key), key, config.MaskURL(c.engine(key)), err)
}
