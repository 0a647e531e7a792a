package broker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/klauspost/compress/s2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats-server/v2/server/archive"
)

// copyStream copies one stream by the server's own backup, whose entries are
// messages, and returns how many it left out.
func (e *Embedded) copyStream(ctx context.Context, to *server.Account, name string, edit Edit) (uint64, error) {
	config, backup, err := e.backup(ctx, name)
	if err != nil {
		return 0, err
	}
	defer backup.Close() //nolint:errcheck // it is read to its end, or given up
	out, in := io.Pipe()
	var dropped uint64
	filtered := make(chan error, 1)
	go func() {
		var err error
		dropped, err = filter(in, backup, name, edit)
		_ = in.CloseWithError(err) // documented
		filtered <- err
	}()
	_, err = to.RestoreStreamV2(config, out)
	_ = out.CloseWithError(err) // documented
	return dropped, errors.Join(err, <-filtered)
}

// filter copies a backup of a stream with the messages edited, and returns how many were
// left out or changed.
func filter(to io.Writer, from io.Reader, stream string, edit Edit) (edited uint64, err error) {
	packed := s2.NewWriter(to)
	defer func() { err = errors.Join(err, packed.Close()) }()
	in, out := archive.NewReader(s2.NewReader(from)), archive.NewWriter(packed)
	state := server.StreamState{}
	for entries := 0; ; entries++ {
		h, err := in.Next()
		if err != nil {
			return edited, err
		}
		body, err := io.ReadAll(in)
		if err != nil {
			return edited, err
		}
		end := h.Sequence == 0 && h.Name == ""
		switch {
		case entries == 0:
			err = json.Unmarshal(body, &state)
		case h.Sequence > 0:
			data := body[h.HeaderSize:]
			kept, keep := edit(stream, h.Name, h.Sequence, data)
			if !keep || !bytes.Equal(kept, data) {
				edited++
			}
			if !keep {
				continue
			}
			body, h.PayloadSize = slices.Concat(body[:h.HeaderSize], kept), int64(len(kept))
		case h.Sequence == 0 && !end:
			if body, err = rewound(body); err == nil {
				h.PayloadSize = int64(len(body))
			}
		}
		if err == nil {
			err = out.WriteHeader(h)
		}
		if err == nil {
			_, err = out.Write(body)
		}
		if err != nil || end {
			return edited, err
		}
	}
}

// rewound is the state of a consumer that has delivered nothing behind the last
// message that was acknowledged with all before it, because later messages may be
// gone. It delivers the rest again.
func rewound(body []byte) ([]byte, error) {
	var c server.SnapshotConsumerState
	if err := json.Unmarshal(body, &c); err != nil {
		return nil, fmt.Errorf("read consumer: %w", err)
	}
	if c.ConsumerState != nil {
		c.Delivered, c.Pending, c.Redelivered = c.AckFloor, nil, nil
	}
	return json.Marshal(c)
}

// backup asks the server for a backup of a stream, as archive entries in S2.
func (e *Embedded) backup(ctx context.Context, name string) (*server.StreamConfig, io.ReadCloser, error) {
	inbox := e.conn.NewInbox()
	chunks, err := e.conn.SubscribeSync(inbox)
	if err != nil {
		return nil, nil, err
	}
	stop := func() { _ = chunks.Unsubscribe() }
	request, err := json.Marshal(server.JSApiStreamSnapshotRequest{DeliverSubject: inbox})
	if err != nil {
		stop()
		return nil, nil, err
	}
	asked, cancel := context.WithTimeout(ctx, RequestLimit)
	defer cancel()
	reply, err := e.conn.RequestWithContext(asked, fmt.Sprintf(server.JSApiStreamSnapshotT, name), request)
	var answer server.JSApiStreamSnapshotResponse
	if err == nil {
		err = json.Unmarshal(reply.Data, &answer)
	}
	if err == nil && answer.Error != nil {
		err = answer.Error
	}
	if err != nil {
		stop()
		return nil, nil, fmt.Errorf("ask for a backup: %w", err)
	}
	out, in := io.Pipe()
	go func() {
		defer stop()
		for {
			m, err := chunks.NextMsgWithContext(ctx)
			if err == nil && len(m.Data) == 0 {
				if status := m.Header.Get("Status"); status != "" && status != "204" {
					err = fmt.Errorf("back up: %s %s", status, m.Header.Get("Description"))
				} else {
					err = io.EOF
				}
			}
			if err == nil {
				_, err = in.Write(m.Data)
			}
			if err == nil && m.Reply != "" {
				err = m.Respond(nil)
			}
			if err != nil {
				_ = in.CloseWithError(err) // documented
				return
			}
		}
	}()
	return answer.Config, out, nil
}
