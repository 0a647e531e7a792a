package broker

import (
	"cmp"
	"context"
	"net"
	"net/url"
	"strings"
	"time"
)

// DialOne returns nil if one of the servers of a cluster takes a connection. The
// client would try again until the check ends, and not say why.
func DialOne(ctx context.Context, urls string) (err error) {
	for address := range strings.SplitSeq(urls, ",") {
		address = strings.TrimSpace(address)
		if !strings.Contains(address, "://") { // as the client reads it
			address = "nats://" + address
		}
		u, parsed := url.Parse(address)
		if parsed != nil {
			continue // the client is to say what it thinks of it
		}
		var dialer net.Dialer
		conn, failed := dialer.DialContext(ctx, "tcp", net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), "4222")))
		if failed == nil {
			return conn.Close()
		}
		err = failed
	}
	return err
}

// Unreached is err, or why no server of a NATS takes a connection: the client
// tries until its time is over, and does not say why.
func Unreached(ctx context.Context, urls string, err error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if refused := DialOne(ctx, urls); refused != nil {
		return refused
	}
	return err
}
