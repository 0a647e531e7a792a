package broker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"palimpsest/internal/topology"
)

// OwnServer is the URL of the server that runs in this process.
const OwnServer = "embedded"

// Config says which broker to use: the server of this process, where URL is
// [OwnServer], or another one.
type Config struct {
	ConnectConfig

	// Config is that of the streams which this program creates.
	topology.Config
	// Listen is the address of the server of this process for publishers.
	Listen string
	// Sync is required.
	Sync Sync
}

// DefaultConfig is a server on this machine.
func DefaultConfig() Config {
	return Config{ConnectConfig: ConnectConfig{URL: "nats://127.0.0.1:4222"}, Listen: "127.0.0.1:4222", Sync: SyncInterval, Config: topology.Config{Replicas: 1}}
}

// Own reports whether the server runs in this process.
func (c Config) Own() bool { return c.URL == OwnServer }

// Validate names every setting that cannot be used.
func (c Config) Validate() error {
	var errs []error
	if c.Own() {
		_, _, err := c.address()
		errs = append(errs, err)
	} else if err := c.ConnectConfig.Validate(); err != nil {
		errs = append(errs, fmt.Errorf("nats: %w", err))
	}
	if c.Sync != SyncInterval && c.Sync != SyncAlways {
		errs = append(errs, fmt.Errorf("nats.sync: %q is neither %s nor %s", c.Sync, SyncInterval, SyncAlways))
	}
	if err := c.Config.Validate(); err != nil {
		errs = append(errs, fmt.Errorf("nats: %w", err))
	}
	return errors.Join(errs...)
}

// Topology is what the broker should have.
func (c Config) Topology() topology.Declaration { return topology.Declare(c.Config) }

// Named is how to connect by a name.
func (c Config) Named(name string) ConnectConfig {
	c.Name = name
	return c.ConnectConfig
}

// address is the one that Listen names. Publishers there have no login, so no other
// machine may reach it.
func (c Config) address() (host string, port int, err error) {
	host, text, err := net.SplitHostPort(c.Listen)
	if err != nil {
		return "", 0, fmt.Errorf("nats.listen: %w", err)
	}
	if !loopback(host) {
		return "", 0, fmt.Errorf("nats.listen: %q is not a loopback address, and publishers there have no login", c.Listen)
	}
	number, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return "", 0, fmt.Errorf("nats.listen: %q is not a port", text)
	}
	return host, int(number), nil
}

// Start runs the server of this process over a directory.
func (c Config) Start(dir string, log *slog.Logger) (*Embedded, error) {
	host, port, err := c.address()
	if err != nil {
		return nil, err
	}
	cfg := c.private(dir, log)
	cfg.Private, cfg.Host, cfg.Port = false, host, port
	return StartEmbedded(cfg)
}

// StartPrivate is Start without an address for clients.
func (c Config) StartPrivate(dir string, log *slog.Logger) (*Embedded, error) {
	return StartEmbedded(c.private(dir, log))
}

// Stopped returns the broker of a directory on which none runs.
func (c Config) Stopped(dir string, log *slog.Logger) Stopped { return Stopped{c.private(dir, log)} }

// private configures a server of this process that does not listen. It has no replicas.
func (c Config) private(dir string, log *slog.Logger) EmbeddedConfig {
	streams := c.Config
	streams.Replicas = 1
	return EmbeddedConfig{Dir: dir, Private: true, Sync: c.Sync, Topology: streams, Logger: log}
}

// Open connects by a name to another broker, as [OpenRemote] does.
func (c Config) Open(ctx context.Context, name string, log *slog.Logger) (*Remote, error) {
	to := c.Named(name)
	to.Logger = log
	remote, err := OpenRemote(ctx, to, c.Topology())
	if err != nil {
		return nil, Unreached(ctx, c.URL, err)
	}
	return remote, nil
}

// ConnectOwner connects with the owner's credential to the broker: to the server that
// runs on the directory dir where it is one of our own. The error wraps [ErrNotRunning]
// where none runs there.
func (c Config) ConnectOwner(ctx context.Context, dir string) (*nats.Conn, error) {
	if c.Own() {
		to, err := Endpoint(dir)
		if err != nil {
			return nil, err
		}
		return Connect(ctx, to)
	}
	conn, err := Connect(ctx, c.Named("palimpsest"))
	if err != nil {
		return nil, Unreached(ctx, c.URL, err)
	}
	return conn, nil
}

// Broker is what a process needs of its broker; [Embedded] and [Remote] are one.
type Broker interface {
	Conn() *nats.Conn
	JetStream() jetstream.JetStream
	// Callers is for what API callers publish.
	Callers() jetstream.JetStream
	// ClientURL is where publishers connect.
	ClientURL() string
	Ready(ctx context.Context) error
	// Away names servers that are away, as Ready last saw it, though enough are left.
	Away() []string
	Shutdown(ctx context.Context) error
}

const (
	publisherTimeout = 5 * time.Second
	// publisherRetry is the pause between two attempts of a publisher to reach a
	// server that it lost.
	publisherRetry = 250 * time.Millisecond
)

// ConnectPublisher connects a publisher without a login. The connection reconnects
// without end.
func ConnectPublisher(ctx context.Context, url, name string) (*nats.Conn, error) {
	conn, err := nats.Connect(url, nats.Name(name), nats.Timeout(publisherTimeout),
		nats.MaxReconnects(-1), nats.ReconnectWait(publisherRetry), nats.ReconnectBufSize(-1))
	if err != nil {
		return nil, Unreached(ctx, url, err)
	}
	return conn, nil
}
