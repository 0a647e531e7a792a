package redisserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

// Server is a Redis with the Query Engine.
type Server struct {
	t    testing.TB
	dir  string
	port string
	args []string
	cmd  *exec.Cmd
	done chan struct{} // closed when the process has ended
}

// Launch starts a server that syncs before it acknowledges, unless settings (flags
// and values) differ. It ends with the test.
func Launch(t testing.TB, settings ...string) *Server {
	t.Helper()
	if os.Getenv("TEST_REDIS_SERVER") == "" {
		t.Skip("TEST_REDIS_SERVER names no redis-server: what needs a Redis that can be killed did not run")
	}
	s := &Server{t: t, dir: t.TempDir(), port: freePort(t)}
	s.args = []string{"--bind", "127.0.0.1", "--port", s.port, "--appendonly", "yes", "--appendfsync", "always", "--save", ""}
	if module := os.Getenv("TEST_REDIS_MODULE"); module != "" {
		s.args = append(s.args, "--loadmodule", module)
	}
	s.args = append(s.args, settings...)
	t.Cleanup(s.Kill)
	s.Start()
	return s
}

// freePort returns a free port. The system assigns other ports before it assigns
// this one again.
func freePort(t testing.TB) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close() //nolint:errcheck // nothing was written
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// startLimit bounds a start.
const startLimit = 30 * time.Second

// Start starts the server again and returns once it answers.
func (s *Server) Start() {
	s.t.Helper()
	log, err := os.OpenFile(filepath.Join(s.t.TempDir(), "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		s.t.Fatal(err)
	}
	defer log.Close() //nolint:errcheck // the server writes through its own
	s.cmd = exec.Command(os.Getenv("TEST_REDIS_SERVER"), append(s.args, "--dir", s.dir)...)
	s.cmd.Stdout, s.cmd.Stderr = log, log
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.done = make(chan struct{})
	go func(cmd *exec.Cmd, done chan struct{}) {
		defer close(done)
		_ = cmd.Wait() // it is killed
	}(s.cmd, s.done)
	client := s.client()
	defer client.Close() //nolint:errcheck // nothing is under way
	ctx, cancel := context.WithTimeout(context.Background(), startLimit)
	defer cancel()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	answers := func() bool {
		// The dial comes first: a driver that cannot connect writes to the standard
		// logger.
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", s.Address())
		if err != nil {
			return false
		}
		_ = conn.Close()
		return client.Ping(ctx).Err() == nil
	}
	for !answers() {
		select {
		case <-ticker.C:
		case <-s.done:
			s.t.Fatalf("redis-server ended at its start: %s", read(log.Name()))
		case <-ctx.Done():
			s.t.Fatalf("redis-server does not answer: %s", read(log.Name()))
		}
	}
}

func read(path string) []byte {
	text, err := os.ReadFile(path)
	if err != nil {
		return []byte(err.Error())
	}
	return text
}

// Kill ends the server at once, if it runs.
func (s *Server) Kill() {
	if s.cmd == nil {
		return
	}
	_ = s.cmd.Process.Kill()
	<-s.done
	s.cmd = nil
}

// Holding returns the files of the server that hold a text. A server compresses
// snapshots unless it was started with rdbcompression no.
func (s *Server) Holding(text string) (out []string) {
	s.t.Helper()
	err := filepath.WalkDir(s.dir, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || d.IsDir() {
			return err
		}
		if raw, err := os.ReadFile(path); err == nil && bytes.Contains(bytes.ToLower(raw), []byte(text)) {
			out = append(out, path)
		} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return out
}

// URL names the server.
func (s *Server) URL() string { return "redis://" + s.Address() + "/0" }

// Address is host and port.
func (s *Server) Address() string { return net.JoinHostPort("127.0.0.1", s.port) }

// Port is that of the address.
func (s *Server) Port() int {
	n, _ := strconv.Atoi(s.port) // it was taken from one
	return n
}

func (s *Server) client() *goredis.Client {
	return goredis.NewClient(&goredis.Options{Addr: s.Address(), MaxRetries: -1, DialerRetries: 1})
}

// Do runs a command over a connection of its own.
func (s *Server) Do(args ...any) any {
	s.t.Helper()
	client := s.client()
	defer client.Close() //nolint:errcheck // nothing is under way
	v, err := client.Do(context.Background(), args...).Result()
	if err != nil {
		s.t.Fatalf("%s: %v", fmt.Sprint(args...), err)
	}
	return v
}

// Copy copies the server's files. The returned function restores them while the
// server is down.
func (s *Server) Copy() (restore func()) {
	s.t.Helper()
	kept := filepath.Join(s.t.TempDir(), "copy")
	if err := os.CopyFS(kept, os.DirFS(s.dir)); err != nil {
		s.t.Fatal(err)
	}
	return func() {
		s.t.Helper()
		if err := os.RemoveAll(s.dir); err != nil {
			s.t.Fatal(err)
		}
		if err := os.CopyFS(s.dir, os.DirFS(kept)); err != nil {
			s.t.Fatal(err)
		}
	}
}
