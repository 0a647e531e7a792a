package broker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gofrs/flock"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"palimpsest/internal/topology"
)

// Sync says when a stored message is forced to disk.
type Sync string

const (
	// SyncInterval survives the death of any process and loses at most the
	// interval when the machine loses power.
	SyncInterval Sync = "interval"
	// SyncAlways forces each message to disk before it is acknowledged.
	SyncAlways Sync = "always"
)

// syncInterval is the pause between two syncs of the files.
const syncInterval = 5 * time.Second

// startLimit bounds each step of a start, recovery of the streams apart.
const startLimit = 30 * time.Second

// flushLimit bounds how long a stop waits for the last messages to be sent.
const flushLimit = 2 * time.Second

// EmbeddedConfig configures the broker that runs in this process. Dir is
// required; zero values of the rest work.
type EmbeddedConfig struct {
	// Dir is the data directory; it is created with mode 0700.
	Dir string
	// Host to listen on, 127.0.0.1 by default. Clients without a credential are
	// let in on a loopback address only.
	Host string
	// Port to listen on; 0 takes a free one.
	Port int
	// Private serves this process alone: the server does not listen, and Host and
	// Port are ignored.
	Private bool
	// Sync is SyncInterval by default.
	Sync Sync
	// Topology is applied before any client is let in.
	Topology topology.Config
	// Logger receives the server's log; nil drops it.
	Logger *slog.Logger
	// SpaceInterval is how often free space is looked at; 0 means 1 s.
	SpaceInterval time.Duration
	// Space measures the file system of a directory; nil asks the system.
	Space func(dir string) (Space, error)
}

func (c EmbeddedConfig) withDefaults() EmbeddedConfig {
	c.Host = cmp.Or(c.Host, "127.0.0.1")
	c.Sync = cmp.Or(c.Sync, SyncInterval)
	c.SpaceInterval = cmp.Or(c.SpaceInterval, time.Second)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Space == nil {
		c.Space = Measure
	}
	return c
}

// Validate refuses values that cannot work, by name.
func (c EmbeddedConfig) Validate() error {
	switch {
	case c.Dir == "":
		return errors.New("dir: is required")
	case c.Port < 0 || c.Port > 65535:
		return fmt.Errorf("port: %d is not between 0 and 65535", c.Port)
	case c.Sync != "" && c.Sync != SyncInterval && c.Sync != SyncAlways:
		return fmt.Errorf("sync: %q is neither %q nor %q", c.Sync, SyncInterval, SyncAlways)
	case c.SpaceInterval < 0:
		return errors.New("interval: is negative")
	}
	return c.Topology.Validate()
}

// Embedded is a NATS server in this process, with its streams in files.
type Embedded struct {
	cfg  EmbeddedConfig
	lock *flock.Flock
	conn *nats.Conn
	js   jetstream.JetStream
	// callers is a second connection: what API callers say must not queue behind
	// the batches of the pipeline.
	callers   *nats.Conn
	callersJS jetstream.JetStream

	stopGuard func()

	life    sync.Mutex // held through starts and stops
	closed  bool
	current atomic.Pointer[running]
	port    atomic.Int64 // RANDOM_PORT until a free one is found
	space   atomic.Pointer[Space]
}

// running is one start of the server.
type running struct {
	srv *server.Server
	own *server.Account
	log *serverLog
}

// StartEmbedded runs a broker on a data directory. When it returns, JetStream
// is recovered, the topology applied, and clients are let in. The error wraps
// [ErrPort], [ErrDirectory], [ErrInUse] or [topology.ErrIncompatible].
func StartEmbedded(cfg EmbeddedConfig) (*Embedded, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("configure broker: %w", err)
	}
	e := &Embedded{cfg: cfg.withDefaults()}
	e.port.Store(int64(cfg.Port))
	if cfg.Port == 0 {
		e.port.Store(server.RANDOM_PORT)
	}
	if err := e.takeDirectory(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), startLimit)
	defer cancel()
	err := e.start(ctx)
	if err != nil {
		e.conn.Close()
		e.callers.Close()
		e.stop()
		return nil, errors.Join(err, e.lock.Unlock())
	}
	if err := e.release(ctx); err != nil {
		e.cfg.Logger.Warn("cannot release unacknowledged messages: they are redelivered when their ack wait ends", "error", err)
	}
	e.stopGuard = e.guardSpace()
	return e, nil
}

// Conn is the process's own connection. It needs no network, and outlives
// [Embedded.Restart].
func (e *Embedded) Conn() *nats.Conn { return e.conn }

// JetStream is the API on [Embedded.Conn].
func (e *Embedded) JetStream() jetstream.JetStream { return e.js }

// Callers is the API on a connection of its own, for what API callers publish.
func (e *Embedded) Callers() jetstream.JetStream { return e.callersJS }

// ClientURL is where clients connect, as nats://host:port.
func (e *Embedded) ClientURL() string {
	return "nats://" + net.JoinHostPort(e.cfg.Host, strconv.FormatInt(e.port.Load(), 10))
}

// Ready returns nil while the server accepts clients and JetStream accepts
// messages, and an error otherwise. It sends no request and never waits.
func (e *Embedded) Ready(context.Context) error {
	r := e.current.Load()
	switch {
	case r == nil || !r.srv.Running() || r.srv.Addr() == nil && !e.cfg.Private:
		return ErrNotRunning
	case !r.srv.JetStreamEnabled():
		return fmt.Errorf("%w: JetStream has stopped", ErrNotRunning)
	}
	return e.space.Load().Check()
}

// Away returns no server: there is only one.
func (e *Embedded) Away() []string { return nil }

// InProcessConn implements nats.InProcessConnProvider on the server of the
// moment, so that a connection finds the one that follows a restart.
func (e *Embedded) InProcessConn() (net.Conn, error) {
	r := e.current.Load()
	if r == nil {
		return nil, ErrNotRunning
	}
	return r.srv.InProcessConn()
}

// takeDirectory makes the data directory this process's own.
func (e *Embedded) takeDirectory() error {
	dir := e.cfg.Dir
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("%w: %w", ErrDirectory, err)
	}
	e.lock = flock.New(filepath.Join(dir, lockFile), flock.SetPermissions(0o600))
	switch locked, err := e.lock.TryLock(); {
	case err != nil:
		return fmt.Errorf("%w: %w", ErrDirectory, err)
	case !locked:
		return fmt.Errorf("%w: %s", ErrInUse, dir)
	}
	return nil
}
