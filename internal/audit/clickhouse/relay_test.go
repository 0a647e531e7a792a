package clickhouse_test

import (
	"crypto/tls"
	"io"
	"net"
	"sync"
	"testing"
)

// relay stands between a log and its server: it can be cut, and speak TLS.
type relay struct {
	t       *testing.T
	target  string
	address string
	secure  *tls.Config

	mu       sync.Mutex
	listener net.Listener
	open     map[net.Conn]bool
	ends     sync.WaitGroup
}

func startRelay(t *testing.T, target string, secure *tls.Config) *relay {
	t.Helper()
	r := &relay{t: t, target: target, address: "127.0.0.1:0", secure: secure, open: map[net.Conn]bool{}}
	r.restore()
	t.Cleanup(r.cut)
	return r
}

// restore listens, on the address that it had.
func (r *relay) restore() {
	r.t.Helper()
	l, err := net.Listen("tcp", r.address)
	if err != nil {
		r.t.Fatal(err)
	}
	r.address = l.Addr().String()
	r.listener = l
	if r.secure != nil {
		l = tls.NewListener(l, r.secure)
	}
	r.ends.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			r.ends.Go(func() { r.join(c) })
		}
	})
}

// cut refuses connections and ends those there are.
func (r *relay) cut() {
	_ = r.listener.Close()
	r.mu.Lock()
	for c := range r.open {
		_ = c.Close()
	}
	r.mu.Unlock()
	r.ends.Wait()
}

func (r *relay) join(near net.Conn) {
	far, err := net.Dial("tcp", r.target)
	if err != nil {
		_ = near.Close()
		return
	}
	r.mu.Lock()
	r.open[near], r.open[far] = true, true
	r.mu.Unlock()
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{near, far}, {far, near}} {
		both.Go(func() {
			_, _ = io.Copy(way[0], way[1])
			_, _ = near.Close(), far.Close()
		})
	}
	both.Wait()
	r.mu.Lock()
	delete(r.open, near)
	delete(r.open, far)
	r.mu.Unlock()
}
