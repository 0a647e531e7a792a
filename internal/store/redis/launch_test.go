package redis

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

// launched is a server of the test's own, which it may kill.
type launched struct {
	t    testing.TB
	dir  string
	port int
	args []string
	cmd  *exec.Cmd
	done chan struct{}
}

// launch starts a Redis with the Query Engine, of the binary that the environment
// names, with settings over those of a server that keeps what it acknowledges.
func launch(t testing.TB, settings ...string) *launched {
	t.Helper()
	binary := os.Getenv("TEST_REDIS_SERVER")
	if binary == "" {
		t.Skip("TEST_REDIS_SERVER names no redis-server (and TEST_REDIS_MODULE no search module): what a server of its own is needed for did not run")
	}
	l := &launched{t: t, dir: t.TempDir(), port: freePort(t)}
	l.args = []string{
		"--bind", "127.0.0.1", "--port", strconv.Itoa(l.port), "--appendonly", "yes", "--appendfsync", "always", "--save", "",
		"--enable-debug-command", "local",
	}
	if module := os.Getenv("TEST_REDIS_MODULE"); module != "" {
		l.args = append(l.args, "--loadmodule", module)
	}
	l.args = append(l.args, settings...)
	t.Cleanup(func() { l.kill() })
	l.start()
	return l
}

var nextPort atomic.Int64

// freePort asks the system for a port, of which one more by the cluster's rule
// (ten thousand above) must fit.
func freePort(t testing.TB) int {
	t.Helper()
	for {
		candidate := 17400 + int(nextPort.Add(1))*7%1000
		listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(candidate)))
		if err == nil {
			_ = listener.Close()
			return candidate
		}
	}
}

func (l *launched) start() {
	l.t.Helper()
	l.cmd = exec.Command(os.Getenv("TEST_REDIS_SERVER"), append(l.args, "--dir", l.dir)...)
	output, err := os.OpenFile(filepath.Join(l.t.TempDir(), "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		l.t.Fatal(err)
	}
	defer output.Close()
	l.cmd.Stdout, l.cmd.Stderr = output, output
	if err := l.cmd.Start(); err != nil {
		l.t.Fatal(err)
	}
	l.done = make(chan struct{})
	go func(cmd *exec.Cmd, done chan struct{}) {
		defer close(done)
		_ = cmd.Wait() // it is killed
	}(l.cmd, l.done)
	client := l.client()
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	await(l.t, "the server", func() bool { return client.Ping(ctx).Err() == nil })
}

// kill ends the server at once, if it runs.
func (l *launched) kill() {
	if l.cmd == nil {
		return
	}
	_ = l.cmd.Process.Kill()
	<-l.done
	l.cmd = nil
}

func (l *launched) url() string { return fmt.Sprintf("redis://127.0.0.1:%d/0", l.port) }

// client speaks to the server past the store.
func (l *launched) client() *goredis.Client {
	return goredis.NewClient(&goredis.Options{Addr: fmt.Sprintf("127.0.0.1:%d", l.port), Protocol: 2})
}

// do runs a command past the store.
func (l *launched) do(args ...any) any {
	l.t.Helper()
	client := l.client()
	defer client.Close()
	v, err := client.Do(context.Background(), args...).Result()
	if err != nil {
		l.t.Fatalf("%v: %v", args, err)
	}
	return v
}

// copyOf keeps what the server has on its disk, and returns how to bring it back
// while the server is down.
func (l *launched) copyOf() (restore func()) {
	l.t.Helper()
	kept := filepath.Join(l.t.TempDir(), "copy")
	if err := os.CopyFS(kept, os.DirFS(l.dir)); err != nil {
		l.t.Fatal(err)
	}
	return func() {
		l.t.Helper()
		if err := os.RemoveAll(l.dir); err != nil {
			l.t.Fatal(err)
		}
		if err := os.CopyFS(l.dir, os.DirFS(kept)); err != nil {
			l.t.Fatal(err)
		}
	}
}

// config opens stores on the server; a short pulse keeps tests short.
func (l *launched) config() Config {
	return Config{URL: l.url(), Embedder: testEmbedder, Pulse: 20 * time.Millisecond}
}

// await asks until holds says yes.
func await(t testing.TB, what string, holds func() bool) {
	t.Helper()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for began := time.Now(); !holds(); <-ticker.C {
		if time.Since(began) > 30*time.Second {
			t.Fatalf("waited 30 s for %s", what)
		}
	}
}
