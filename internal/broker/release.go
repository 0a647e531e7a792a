package broker

import (
	"context"
	"fmt"

	"palimpsest/internal/topology"
)

// releaseMost bounds the messages of a consumer that are released, newest first.
const releaseMost = 1 << 16

// release gives the messages back that were in hand when the process died that had
// the directory before. The stages were in that process, so that no other process has
// them in hand. Without it they would wait for the ack wait of their consumer. A message
// keeps its count of deliveries.
//
// Where a message in hand was delivered more than once, it may be why the process
// dies. Then the ack wait spaces the attempts.
func (e *Embedded) release(ctx context.Context) error {
	for _, s := range topology.Declare(e.cfg.Topology).Streams {
		for _, c := range s.Consumers {
			consumer, err := e.js.Consumer(ctx, s.Config.Name, c.Durable)
			if err != nil {
				return fmt.Errorf("look up consumer %s: %w", c.Durable, err)
			}
			info := consumer.CachedInfo()
			if info.NumAckPending == 0 || info.NumRedelivered > 0 {
				continue
			}
			last := info.Delivered
			for seq := max(info.AckFloor.Stream+1, last.Stream-min(last.Stream, releaseMost)+1); seq <= last.Stream; seq++ {
				// The subject that a delivery of the message has as its reply. The
				// server ignores it for messages that are not in hand.
				subject := fmt.Sprintf("$JS.ACK.%s.%s.1.%d.%d.0.0", s.Config.Name, c.Durable, seq, last.Consumer)
				if err := e.conn.Publish(subject, []byte("-NAK")); err != nil {
					return fmt.Errorf("release messages of %s: %w", c.Durable, err)
				}
			}
		}
	}
	return e.conn.FlushWithContext(ctx)
}
