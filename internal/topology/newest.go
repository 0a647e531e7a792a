package topology

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Newest names the newest message of several streams.
type Newest struct {
	Stream string
	At     time.Time // by the server's clock; zero where there is no message
}

// NewestMessage finds the newest message of the declared streams. A stream that
// does not exist has none.
func NewestMessage(ctx context.Context, js jetstream.JetStream, decl Declaration) (out Newest, err error) {
	for _, s := range decl.Streams {
		stream, err := js.Stream(ctx, s.Config.Name)
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			continue
		}
		if err != nil {
			return out, fmt.Errorf("inspect stream %s: %w", s.Config.Name, err)
		}
		if at := stream.CachedInfo().State.LastTime; at.After(out.At) {
			out = Newest{Stream: s.Config.Name, At: at}
		}
	}
	return out, nil
}
