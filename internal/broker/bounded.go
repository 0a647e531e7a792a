package broker

import (
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// RequestLimit bounds one request to JetStream. A server that dies before it
// answers leaves the request without an answer for ever.
const RequestLimit = 5 * time.Second

// NewJetStream returns the API on a connection. The library bounds every request under a
// context without a deadline by [RequestLimit], also those of the streams and consumers that
// the API returns. A deadline of the context takes the place of the limit, so contexts that
// live for minutes have none to show: see internal/pipeline. A message that is published
// without waiting fails within [publishWait]. Fetches and readers end by themselves.
func NewJetStream(conn *nats.Conn, opts ...jetstream.JetStreamOpt) (jetstream.JetStream, error) {
	return jetstream.New(conn, append([]jetstream.JetStreamOpt{
		jetstream.WithPublishAsyncTimeout(publishWait), jetstream.WithDefaultTimeout(RequestLimit),
	}, opts...)...)
}
