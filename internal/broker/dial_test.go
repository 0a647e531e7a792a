package broker_test

import (
	"net"
	"testing"

	"palimpsest/internal/broker"
)

// TestDialOneTakesAddressesWithoutAScheme: the client does, too.
func TestDialOneTakesAddressesWithoutAScheme(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := l.Addr().String()
	for _, urls := range []string{"nats://" + at, at, "u:p@" + at, "127.0.0.1:1, " + at} {
		if err := broker.DialOne(t.Context(), urls); err != nil {
			t.Errorf("%s: %v", urls, err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := broker.DialOne(t.Context(), at); err == nil {
		t.Error("a closed address takes a connection")
	}
}
