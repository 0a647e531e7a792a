package transfer

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"palimpsest/internal/topology"
)

// Import publishes the lines of an export in their order, to streams that are empty,
// and calls step for each message. It returns an error if the export is not whole.
func Import(ctx context.Context, js jetstream.JetStream, from io.Reader, step func(n int)) (out Counts, err error) {
	lines := bufio.NewScanner(from)
	lines.Buffer(make([]byte, 64<<10), longest)
	var waiting []jetstream.PubAckFuture
	var end *Counts
	for number := 1; lines.Scan(); number++ {
		var l line
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			return out, fmt.Errorf("line %d: %w", number, err)
		}
		if end != nil {
			return out, fmt.Errorf("line %d: follows the end of the export", number)
		}
		switch l.Stream {
		case topology.StreamEpisodes:
			out.Episodes++
		case topology.StreamAudit:
			out.Audit++
		default:
			if end = l.End; end == nil {
				return out, fmt.Errorf("line %d: is no part of an export of everything", number)
			}
			continue
		}
		future, err := js.PublishMsgAsync(&nats.Msg{Subject: l.Subject, Header: l.Header, Data: l.Data}, jetstream.WithExpectStream(l.Stream))
		if err != nil {
			return out, fmt.Errorf("line %d: %w", number, err)
		}
		step(1)
		if waiting = append(waiting, future); len(waiting) == window {
			if err := acknowledged(ctx, waiting); err != nil {
				return out, fmt.Errorf("before line %d: %w", number+1, err)
			}
			waiting = waiting[:0]
		}
	}
	if err := errors.Join(lines.Err(), acknowledged(ctx, waiting)); err != nil {
		return out, err
	}
	if end == nil || end.Episodes != out.Episodes || end.Audit != out.Audit {
		return out, errors.New("the export is not whole: its last line is missing or counts other messages")
	}
	return *end, nil
}

// acknowledged waits until the streams have all messages.
func acknowledged(ctx context.Context, waiting []jetstream.PubAckFuture) error {
	for _, future := range waiting {
		select {
		case <-future.Ok():
		case err := <-future.Err():
			return err
		case <-time.After(patience):
			return errors.New("no acknowledgement from the stream")
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
