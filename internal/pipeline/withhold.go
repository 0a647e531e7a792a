package pipeline

import (
	"context"
	"errors"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"palimpsest/pkg/events"
)

// withhold takes the text out of the letter of an episode that asked to leave no
// trace, well formed or not. Its hash goes too: a short text can be guessed from
// it.
func withhold(l *events.MessageBuried) {
	episode := strings.HasPrefix(l.Subject, "palimpsest."+events.NounEpisodes+".")
	if episode && events.Incognito(l.Data) {
		l.Data, l.Headers, l.SHA256, l.Truncated = nil, nil, "", true
	}
}

// withheld reports whether a letter was given no text on purpose.
func withheld(l events.MessageBuried) bool {
	return l.Truncated && len(l.Data) == 0 && l.Size > 0
}

// erase deletes the message of a letter from its stream, unless an earlier attempt has.
func (b *broker) erase(ctx context.Context, l events.MessageBuried) error {
	stream, err := b.js.Stream(ctx, l.Stream)
	if err == nil {
		err = remove(ctx, stream, l.Sequence)
	}
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil
	}
	return err
}

// remove deletes a message and overwrites its bytes. It returns
// [jetstream.ErrMsgNotFound] if there is none.
func remove(ctx context.Context, stream jetstream.Stream, sequence uint64) error {
	err := stream.SecureDeleteMsg(ctx, sequence)
	if err == nil {
		return nil
	}
	if _, gone := stream.GetMsg(ctx, sequence); errors.Is(gone, jetstream.ErrMsgNotFound) {
		return gone
	}
	return err
}
