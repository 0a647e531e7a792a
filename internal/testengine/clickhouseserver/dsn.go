package clickhouseserver

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"palimpsest/pkg/events"
)

// missing is the message of skipped tests.
const missing = "no ClickHouse here: `make clickhouse` fetches one, TEST_CLICKHOUSE_DSN names another"

// shared is the server of all tests of a package, started by the first that needs
// it.
var shared struct {
	once   sync.Once
	server *Server
	err    error
}

// Tests runs the tests of a package and stops the server that they shared:
//
//	func TestMain(m *testing.M) { goleak.VerifyTestMain(clickhouseserver.Tests{M: m}) }
type Tests struct{ M *testing.M }

// Run implements goleak.TestingM.
func (t Tests) Run() int {
	code := t.M.Run()
	if shared.server == nil {
		return code
	}
	if err := shared.server.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, "stop ClickHouse:", err)
		return max(code, 1)
	}
	return code
}

// Each runs a test for each protocol, "native" and "http", or for each server
// that TEST_CLICKHOUSE_DSN names. Every call of dsn names another database,
// which is not there yet and is dropped when the test ends.
func Each(t *testing.T, run func(t *testing.T, dsn func(t testing.TB) string)) {
	t.Helper()
	servers := named()
	if servers == nil {
		s := engine(t)
		servers = map[string]string{"native": s.DSN("native", ""), "http": s.DSN("http", "")}
	}
	for name, base := range servers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, func(t testing.TB) string { return database(t, base) })
		})
	}
}

// DSN names a database of the test's own on the first server there is.
func DSN(t testing.TB) string {
	t.Helper()
	for _, base := range named() {
		return database(t, base)
	}
	return database(t, engine(t).DSN("native", ""))
}

// Own starts a server for one test, which may kill it.
func Own(t testing.TB) *Server {
	t.Helper()
	s, err := NewServer(library(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// named are the servers of the environment, by host; nil for none.
func named() map[string]string {
	var servers map[string]string
	for _, dsn := range strings.Fields(os.Getenv("TEST_CLICKHOUSE_DSN")) {
		if servers == nil {
			servers = map[string]string{}
		}
		u, err := url.Parse(dsn)
		if err != nil {
			panic("TEST_CLICKHOUSE_DSN holds what is no URL")
		}
		servers[u.Scheme+" "+u.Host] = dsn
	}
	return servers
}

func engine(t testing.TB) *Server {
	t.Helper()
	path := library(t)
	shared.once.Do(func() { shared.server, shared.err = NewServer(path) })
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.server
}

// library is where `make clickhouse` put the engine; the test is skipped where
// it did not.
func library(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("no go.mod above the test")
		}
		dir = filepath.Dir(dir)
	}
	path := filepath.Join(dir, ".cache", "clickhouse", "libchdb.so")
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		t.Skip(missing)
	}
	return path
}

// database names one of the test's own.
func database(t testing.TB, base string) string {
	t.Helper()
	u, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	name := "palimpsest_test_" + events.HashID(t.Name(), t.TempDir())
	u.Path = ""
	bare := u.String()
	t.Cleanup(func() {
		if err := drop(bare, name); err != nil {
			t.Errorf("drop %s: %v", name, err)
		}
	})
	u.Path = "/" + name
	return u.String()
}

// Connect opens a bare connection, for tests that look behind the adapter.
func Connect(dsn string) (driver.Conn, error) {
	opt, err := clickhouse.ParseDSN(dsn)
	if err != nil {
		return nil, err
	}
	return clickhouse.Open(opt)
}

func drop(dsn, name string) error {
	c, err := Connect(dsn)
	if err != nil {
		return err
	}
	return errors.Join(c.Exec(context.Background(), "DROP DATABASE IF EXISTS "+name+" SYNC"), c.Close())
}
