package redisdouble

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
)

// shared is the double of all tests of a package, started by the first that
// asks.
var shared struct {
	once   sync.Once
	server *Server
	err    error
}

// Tests runs the tests of a package and stops the double that they shared:
//
//	func TestMain(m *testing.M) { goleak.VerifyTestMain(redisdouble.Tests{M: m}) }
type Tests struct{ M *testing.M }

// Run implements goleak.TestingM.
func (t Tests) Run() int {
	code := t.M.Run()
	if shared.server != nil {
		shared.server.Close()
	}
	return code
}

// Real is the URL of the real server that the environment names; "" for none.
func Real() string { return os.Getenv("TEST_REDIS_URL") }

// URL names the server that a package's tests share: the real one that
// TEST_REDIS_URL names, or else a double, which it says once. Its package must
// run its tests by [Tests].
func URL(t testing.TB) string {
	t.Helper()
	if url := Real(); url != "" {
		return url
	}
	shared.once.Do(func() {
		if shared.server, shared.err = Open("127.0.0.1:0"); shared.err == nil {
			fmt.Fprintln(os.Stderr, "TEST_REDIS_URL names no server: these tests run against a double of Redis, not a real one")
		}
	})
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.server.URL()
}

// Start runs a double of the test's own until it ends and returns its URL.
func Start(t testing.TB) string {
	t.Helper()
	s, err := Open("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s.URL()
}

// Serve runs a double on an address, host:port, until ctx ends.
func Serve(ctx context.Context, addr string) error {
	s, err := Open(addr)
	if err != nil {
		return err
	}
	<-ctx.Done()
	s.Close()
	return nil
}
