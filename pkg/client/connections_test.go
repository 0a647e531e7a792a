package client_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"

	"palimpsest/pkg/client"
)

// TestConnectionsAreKept: as many callers as wait at a time use as many connections,
// however often they call.
func TestConnectionsAreKept(t *testing.T) {
	t.Parallel()
	const callers, calls = 8, 20
	var connections, arrived atomic.Int64
	all := make(chan struct{})
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if arrived.Add(1)%callers != 0 {
			<-all
		} else {
			for range callers - 1 {
				all <- struct{}{}
			}
		}
		_, _ = w.Write([]byte("{}"))
	}))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	server.Start()
	defer server.Close()
	c, err := client.New(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	for range calls {
		var round sync.WaitGroup
		for range callers {
			round.Go(func() {
				if _, err := c.Reports(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		round.Wait()
	}
	// A connection that was dialled for a call which found another in time is kept, too.
	if n := connections.Load(); n > 2*callers {
		t.Errorf("%d connections for %d callers", n, callers)
	}
}
