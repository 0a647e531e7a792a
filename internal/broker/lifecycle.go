package broker

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"palimpsest/internal/topology"
)

// start brings a server up in the order in which nothing can be lost: recover
// the streams, connect ourselves, apply the topology, and only then listen.
func (e *Embedded) start(ctx context.Context) error {
	if !e.cfg.Private {
		if err := e.probePort(); err != nil {
			return err
		}
	}
	if err := e.look(); err != nil {
		return err
	}
	r, err := e.boot()
	if err != nil {
		return err
	}
	e.current.Store(r)
	if err := e.connect(ctx); err != nil {
		return err
	}
	if err := topology.Apply(ctx, e.js, topology.Declare(e.cfg.Topology)); err != nil {
		return err
	}
	if e.cfg.Private {
		return nil
	}
	if err := e.listen(r); err != nil {
		return err
	}
	if err := writePrivate(filepath.Join(e.cfg.Dir, URLFile), e.ClientURL()+"\n"); err != nil {
		return fmt.Errorf("%w: %w", ErrDirectory, err)
	}
	return nil
}

// probePort says early, before anything is written, that a port is taken.
func (e *Embedded) probePort() error {
	port := max(0, e.port.Load())
	l, err := net.Listen("tcp", net.JoinHostPort(e.cfg.Host, strconv.FormatInt(port, 10)))
	if err != nil {
		return fmt.Errorf("%w: %w", ErrPort, err)
	}
	return l.Close()
}

// boot recovers the streams before it accepts clients.
func (e *Embedded) boot() (*running, error) {
	public, err := credential(e.cfg.Dir)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDirectory, err)
	}
	opts, err := e.serverOptions(public)
	if err != nil {
		return nil, err
	}
	srv, err := server.NewServer(opts)
	if err != nil {
		return nil, fmt.Errorf("configure server: %w", err)
	}
	r := &running{srv: srv, log: &serverLog{to: e.cfg.Logger}}
	srv.SetLoggerV2(r.log, e.cfg.Logger.Enabled(context.Background(), levelServerDebug), false, false)
	srv.Start()
	if why := r.log.failure(); why != "" {
		halt(srv)
		return nil, fmt.Errorf("%w: %s", ErrDirectory, why)
	}
	r.own, err = srv.LookupAccount(ownAccount)
	if err == nil {
		// Recovery needs room for the stored messages; the limit comes after it.
		err = r.own.EnableJetStream(limits(-1), nil)
	}
	if err == nil {
		err = e.limit(r)
	}
	if err != nil {
		halt(srv)
		return nil, fmt.Errorf("%w: recover streams: %w", ErrDirectory, err)
	}
	return r, nil
}

// connect makes the process's own connection at the first start; at a restart
// it waits until that has found the new server.
func (e *Embedded) connect(ctx context.Context) error {
	for _, c := range []struct {
		name string
		conn **nats.Conn
		js   *jetstream.JetStream
	}{{"palimpsest", &e.conn, &e.js}, {"palimpsest-callers", &e.callers, &e.callersJS}} {
		if *c.conn != nil {
			if err := awaitConnection(ctx, *c.conn); err != nil {
				return err
			}
			continue
		}
		conn, err := Connect(ctx, ConnectConfig{
			URL:       "nats://in-process",
			Name:      c.name,
			NKeySeed:  filepath.Join(e.cfg.Dir, SeedFile),
			Logger:    e.cfg.Logger,
			inProcess: e,
		})
		if err != nil {
			return err
		}
		js, err := NewJetStream(conn)
		if err != nil {
			conn.Close()
			return err
		}
		*c.conn, *c.js = conn, js
	}
	return nil
}

// listen lets clients in.
func (e *Embedded) listen(r *running) error {
	ready := make(chan struct{})
	r.srv.AcceptLoop(ready)
	<-ready
	addr, ok := r.srv.Addr().(*net.TCPAddr)
	if !ok || addr == nil {
		return fmt.Errorf("%w: %s", ErrPort, r.log.failure())
	}
	e.port.Store(int64(addr.Port))
	return nil
}

// stop takes the server down; the connection is left to find another.
func (e *Embedded) stop() {
	_ = os.Remove(filepath.Join(e.cfg.Dir, URLFile))
	if r := e.current.Swap(nil); r != nil {
		halt(r.srv)
	}
}

func halt(srv *server.Server) {
	srv.Shutdown()
	srv.WaitForShutdown()
}

// Restart stops the server and starts it again on the same address, with the
// same data. Clients, and [Embedded.Conn], reconnect. After an error the broker
// is not running; Restart may be called again.
func (e *Embedded) Restart(ctx context.Context) error {
	e.life.Lock()
	defer e.life.Unlock()
	if e.closed {
		return ErrNotRunning
	}
	return e.restart(ctx)
}

// restart is Restart for those who hold the lock.
func (e *Embedded) restart(ctx context.Context) error {
	e.stop()
	if err := e.start(ctx); err != nil {
		e.stop()
		return fmt.Errorf("restart broker: %w", err)
	}
	return nil
}

// Shutdown closes the connection, stops the server and gives the directory
// back. Everything acknowledged is on disk when it returns nil; if ctx ends
// first, that goes on in the background. Later calls do nothing.
func (e *Embedded) Shutdown(ctx context.Context) error {
	done := make(chan error, 1)
	go func() { done <- e.shutdown() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return fmt.Errorf("stop broker: %w", ctx.Err())
	}
}

func (e *Embedded) shutdown() error {
	e.stopGuard() // before the lock, which the guard may hold
	e.life.Lock()
	defer e.life.Unlock()
	if e.closed {
		return nil
	}
	e.closed = true
	closeConn(e.callers)
	closeConn(e.conn)
	e.stop()
	return e.lock.Unlock()
}

// closeConn sends what is still buffered and closes the connection.
func closeConn(conn *nats.Conn) {
	if conn.IsConnected() {
		_ = conn.FlushTimeout(flushLimit)
	}
	conn.Close()
}
