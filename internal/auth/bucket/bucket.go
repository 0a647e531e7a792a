// Package bucket keeps API keys in a key-value bucket of JetStream.
package bucket

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"palimpsest/internal/auth"
	"palimpsest/internal/tail"
	"palimpsest/internal/topology"
)

const (
	// batch bounds the entries of one read.
	batch = 256
	// readWait bounds one read of the entries that are there already.
	readWait = 2 * time.Second
	// followWait is how long one read waits for a change.
	followWait = 2 * time.Second
)

// Bucket implements [auth.Bucket].
type Bucket struct{ js jetstream.JetStream }

// New returns the bucket of the broker behind js.
func New(js jetstream.JetStream) *Bucket { return &Bucket{js} }

// Get implements [auth.Bucket].
func (b *Bucket) Get(ctx context.Context, name string, v any) (revision uint64, err error) {
	stream, err := b.js.Stream(ctx, topology.StreamKeys)
	if err != nil {
		return 0, err
	}
	m, err := stream.GetLastMsgForSubject(ctx, topology.SubjectKeys+name)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return m.Sequence, json.Unmarshal(m.Data, v)
}

// Put implements [auth.Bucket].
func (b *Bucket) Put(ctx context.Context, name string, v any, revision uint64) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = b.js.Publish(ctx, topology.SubjectKeys+name, text, jetstream.WithExpectLastSequencePerSubject(revision))
	if refused := (*jetstream.APIError)(nil); errors.As(err, &refused) && refused.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence {
		return errors.Join(auth.ErrChanged, err)
	}
	return err
}

// Load implements [auth.Bucket].
func (b *Bucket) Load(ctx context.Context, yield func(name string, value []byte)) (auth.Changes, error) {
	stream, err := b.js.Stream(ctx, topology.StreamKeys)
	if err != nil {
		return nil, fmt.Errorf("open the bucket of keys: %w", err)
	}
	c := &changes{tail.New(tail.Config{JS: b.js, Stream: topology.StreamKeys})}
	state := stream.CachedInfo().State
	for state.Msgs > 0 && c.reader.At() < state.LastSeq {
		n, err := c.read(ctx, readWait, yield)
		if err == nil && n == 0 {
			err = context.DeadlineExceeded
		}
		if err != nil {
			c.Close()
			return nil, fmt.Errorf("read the bucket of keys: %w", err)
		}
	}
	return c, nil
}

// changes implements [auth.Changes].
type changes struct{ reader *tail.Reader }

// Next implements [auth.Changes].
func (c *changes) Next(ctx context.Context, yield func(name string, value []byte)) error {
	_, err := c.read(ctx, followWait, yield)
	if errors.Is(err, tail.ErrCut) {
		return errors.Join(auth.ErrRestored, err)
	}
	return err
}

func (c *changes) read(ctx context.Context, wait time.Duration, yield func(name string, value []byte)) (n int, err error) {
	got, err := c.reader.Read(ctx, batch, wait)
	if err != nil {
		return 0, err
	}
	for _, m := range got {
		yield(strings.TrimPrefix(m.Subject, topology.SubjectKeys), m.Data)
	}
	return len(got), nil
}

// Close implements [auth.Changes].
func (c *changes) Close() { c.reader.Close() }
