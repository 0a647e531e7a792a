package transfer

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"palimpsest/internal/topology"
	"palimpsest/pkg/events"
)

// Erasures knows the users whom a data directory has erased.
type Erasures interface {
	// Erased reports whether an episode of a user is one that was erased.
	Erased(project, user string, sequence uint64, arrived time.Time) bool
	// Born returns how often a user was erased: effects of a lower incarnation were.
	Born(project, user string) uint64
}

// Import publishes the lines of an export in their order, to streams that are empty,
// and calls step for each message. It leaves out the messages of users who were erased
// since. It returns an error if the export is not whole
// or was changed.
func Import(ctx context.Context, js jetstream.JetStream, from io.Reader, gone Erasures, step func(n int)) (out Counts, err error) {
	lines := bufio.NewScanner(from)
	lines.Buffer(make([]byte, 64<<10), longest)
	var waiting []jetstream.PubAckFuture
	var end *Counts
	sum := sha256.New()
	for number := 1; lines.Scan(); number++ {
		var l line
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			return out, fmt.Errorf("line %d: %w", number, err)
		}
		if end != nil {
			return out, fmt.Errorf("line %d: follows the end of the export", number)
		}
		if l.End == nil {
			sum.Write(lines.Bytes())
			sum.Write([]byte{'\n'})
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
		if left, err := l.erased(gone); err != nil {
			return out, fmt.Errorf("line %d: %w", number, err)
		} else if left {
			out.Erased++
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
	if got := hex.EncodeToString(sum.Sum(nil)); got != end.Sum {
		return out, fmt.Errorf("the export was changed: its lines have the SHA-256 %s, its last line says %q", got, end.Sum)
	}
	end.Erased = out.Erased
	return *end, nil
}

// erased reports whether a line is of a user who was erased after it.
func (l line) erased(gone Erasures) (bool, error) {
	meta, data, err := events.Decode(events.Raw{Subject: l.Subject, Header: l.Header, Body: l.Data, Stream: l.Stream})
	if err != nil {
		return false, err
	}
	switch meta.Kind {
	case events.KindEpisodeRecorded:
		// The line has no sequence; the first was erased if any was.
		return gone.Erased(meta.Scope.Project, meta.Scope.User, 1, meta.Time), nil
	case events.KindEffectCommitted:
		var effect struct {
			Incarnation uint64 `json:"incarnation"`
		}
		err := json.Unmarshal(data, &effect)
		return effect.Incarnation < gone.Born(meta.Scope.Project, meta.Scope.User), err
	}
	return false, nil
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
