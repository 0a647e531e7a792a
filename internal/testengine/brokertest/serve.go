package brokertest

import (
	"testing"

	"github.com/nats-io/nats-server/v2/server"
)

// Serve runs a bare server until the test ends.
func Serve(t testing.TB, opts *server.Options) *server.Server {
	t.Helper()
	srv, err := server.NewServer(opts)
	if err != nil {
		t.Fatal(err)
	}
	srv.Start()
	t.Cleanup(func() {
		srv.Shutdown()
		srv.WaitForShutdown()
	})
	if !srv.ReadyForConnections(limit) {
		t.Fatal("the server does not listen")
	}
	return srv
}
