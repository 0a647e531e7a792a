package auth

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/nats-io/nats.go/jetstream"

	"palimpsest/internal/topology"
)

// errChanged: another writer was first.
var errChanged = errors.New("auth: the entry has another revision by now")

// get reads an entry of the bucket into v and returns its revision, 0 for none.
func get(ctx context.Context, js jetstream.JetStream, name string, v any) (revision uint64, err error) {
	stream, err := js.Stream(ctx, topology.StreamKeys)
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

// put writes an entry that has that revision, 0 for one that does not exist. The
// error wraps errChanged where it has another.
func put(ctx context.Context, js jetstream.JetStream, name string, v any, revision uint64) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = js.Publish(ctx, topology.SubjectKeys+name, text, jetstream.WithExpectLastSequencePerSubject(revision))
	if refused := (*jetstream.APIError)(nil); errors.As(err, &refused) && refused.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence {
		return errors.Join(errChanged, err)
	}
	return err
}
