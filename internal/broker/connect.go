package broker

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"palimpsest/internal/topology"
)

// ConnectConfig says how to reach a broker. URL is required; zero values of the
// rest work.
type ConnectConfig struct {
	// URL is one or more of nats://host:port or tls://host:port, with commas.
	URL string
	// Name is how the broker lists the connection; a service's name. Replies come
	// to an inbox of that name, which the permissions of a service need. One token
	// of a subject; empty takes any inbox.
	Name string `yaml:"-"`
	// Creds is a credentials file (JWT and seed), NKeySeed the file of an NKey seed.
	// At most one is set.
	Creds    string
	NKeySeed string `yaml:"nkey_seed"`
	TLS      TLS
	// Logger logs lost and restored connections; nil drops them.
	Logger *slog.Logger `yaml:"-"`

	inProcess nats.InProcessConnProvider
}

// TLS names files in PEM. CA replaces the system's roots; Cert and Key are set
// together.
type TLS struct {
	CA, Cert, Key string
}

// Validate refuses values that cannot work, by name.
func (c ConnectConfig) Validate() error {
	switch {
	case c.URL == "":
		return errors.New("url: is required")
	case strings.ContainsAny(c.Name, ".*> \t"):
		return fmt.Errorf("name: %q is not one token of a subject", c.Name)
	case c.Creds != "" && c.NKeySeed != "":
		return errors.New("credentials: a credentials file and a seed exclude each other")
	case (c.TLS.Cert == "") != (c.TLS.Key == ""):
		return errors.New("tls: certificate and key are set together")
	}
	return nil
}

// reconnectWait is the pause between attempts to reconnect, which jitter makes longer.
const reconnectWait = 250 * time.Millisecond

// Connect returns a connection that, once made, reconnects without end. It
// tries until ctx ends, for a broker that is not there yet.
//
// While there is no connection, publishing is an error: nothing is buffered.
func Connect(ctx context.Context, cfg ConnectConfig) (*nats.Conn, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("configure connection: %w", err)
	}
	options, err := cfg.options()
	if err != nil {
		return nil, fmt.Errorf("configure connection: %w", err)
	}
	conn, err := nats.Connect(cfg.URL, options...)
	if err != nil {
		return nil, fmt.Errorf("connect to broker: %w", err)
	}
	if cfg.Logger != nil && !conn.IsConnected() {
		cfg.Logger.Warn("waiting for the broker", "name", cfg.Name)
	}
	if err := awaitConnection(ctx, conn); err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}

// awaitConnection returns once the broker answers.
func awaitConnection(ctx context.Context, conn *nats.Conn) error {
	changed := conn.StatusChanged(nats.CONNECTED, nats.CLOSED)
	defer conn.RemoveStatusListener(changed)
	for {
		switch {
		case conn.IsClosed():
			return fmt.Errorf("connect to broker: %w", errors.Join(nats.ErrConnectionClosed, conn.LastError()))
		case conn.IsConnected():
			// A round trip: right after the server was lost, the connection does
			// not know it yet.
			if roundTrip(ctx, conn) == nil {
				return nil
			}
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("connect to broker: %w", errors.Join(ctx.Err(), conn.LastError()))
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// roundTrip makes one round trip; the library asks for a deadline of its own.
func roundTrip(ctx context.Context, conn *nats.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	return conn.FlushWithContext(ctx)
}

func (c ConnectConfig) options() ([]nats.Option, error) {
	log := c.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	options := []nats.Option{
		nats.Name(c.Name),
		nats.MaxReconnects(-1),
		nats.RetryOnFailedConnect(true),
		nats.ReconnectWait(reconnectWait),
		nats.ReconnectJitter(reconnectWait/2, reconnectWait),
		nats.ReconnectBufSize(-1),
		nats.IgnoreAuthErrorAbort(),
		nats.DisconnectErrHandler(func(conn *nats.Conn, err error) {
			if !conn.IsClosed() {
				log.Warn("broker connection lost", "name", c.Name, "error", err)
			}
		}),
		nats.ReconnectHandler(func(conn *nats.Conn) {
			log.Info("broker connection restored", "name", c.Name, "server", conn.ConnectedServerName())
		}),
		nats.ErrorHandler(func(_ *nats.Conn, sub *nats.Subscription, err error) { c.failed(log, sub, err) }),
	}
	if c.Name != "" {
		options = append(options, nats.CustomInboxPrefix(topology.Inbox(c.Name)))
	}
	if c.inProcess != nil {
		options = append(options, nats.InProcessServer(c.inProcess), nats.ReconnectWait(50*time.Millisecond),
			nats.ReconnectJitter(0, 0), nats.IgnoreDiscoveredServers())
	}
	return c.secure(options)
}

// failed logs an error that no call returns. A message that found the buffer of its
// reader full was dropped, and the reader asks for it again: that is no error.
func (c ConnectConfig) failed(log *slog.Logger, sub *nats.Subscription, err error) {
	subject, level := "", slog.LevelError
	if sub != nil {
		subject = sub.Subject
	}
	if errors.Is(err, nats.ErrSlowConsumer) {
		level = slog.LevelDebug
	}
	log.Log(context.Background(), level, "broker connection", "name", c.Name, "subject", subject, "error", err)
}

func (c ConnectConfig) secure(options []nats.Option) ([]nats.Option, error) {
	if c.Creds != "" {
		options = append(options, nats.UserCredentials(c.Creds))
	}
	if c.NKeySeed != "" {
		seed, err := nats.NkeyOptionFromSeed(c.NKeySeed)
		if err != nil {
			return nil, err
		}
		options = append(options, seed)
	}
	if c.TLS.CA != "" || c.TLS.Cert != "" {
		options = append(options, nats.Secure(&tls.Config{MinVersion: tls.VersionTLS12}))
	}
	if c.TLS.CA != "" {
		options = append(options, nats.RootCAs(c.TLS.CA))
	}
	if c.TLS.Cert != "" {
		options = append(options, nats.ClientCert(c.TLS.Cert, c.TLS.Key))
	}
	return options, nil
}
