package cli

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/nats-io/nats.go"

	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// maxPublishLine bounds a line of input, in bytes.
const maxPublishLine = 8 << 20

// line is one message of the input. A line that begins with { is JSON with
// these members; any other is the content itself.
type line struct {
	ID string `json:"id,omitempty"`
	// User, Agent and Session override the flags.
	User    string `json:"user,omitempty"`
	Agent   string `json:"agent,omitempty"`
	Session string `json:"session,omitempty"`

	Role      string           `json:"role,omitempty"`
	Content   string           `json:"content"`
	Timestamp events.Timestamp `json:"timestamp,omitzero"`
	Metadata  map[string]any   `json:"metadata,omitempty"`
}

// input is a line as it was read, or why no further one could be.
type input struct {
	number int
	text   []byte
	err    error
}

// read hands over the lines that are not blank, and ends at the end of the
// input, at its first error or with ctx. A reader that blocks is left behind,
// because a terminal cannot be asked to stop.
func read(ctx context.Context, in io.Reader) <-chan input {
	out := make(chan input)
	go func() {
		defer close(out)
		hand := func(i input) bool {
			select {
			case out <- i:
				return true
			case <-ctx.Done():
				return false
			}
		}
		lines := bufio.NewScanner(in)
		lines.Buffer(make([]byte, 64<<10), maxPublishLine)
		number := 0
		for lines.Scan() {
			number++
			text := bytes.Clone(bytes.TrimSpace(lines.Bytes()))
			if len(text) > 0 && !hand(input{number: number, text: text}) {
				return
			}
		}
		switch err := lines.Err(); {
		case errors.Is(err, bufio.ErrTooLong):
			hand(input{err: fmt.Errorf("line %d: is longer than %d bytes", number+1, maxPublishLine)})
		case err != nil:
			hand(input{err: fmt.Errorf("read input: %w", err)})
		}
	}()
	return out
}

func (p *publication) message(number int, text []byte) (*nats.Msg, error) {
	l := line{Content: string(text), Role: p.command.Role}
	if text[0] == '{' {
		l = line{Role: p.command.Role}
		if err := events.Unmarshal(text, &l); err != nil {
			return nil, err
		}
	}
	// A whole envelope: the broker drops a message whose Nats-Msg-Id it has just
	// seen, and the bare id may be that of another user's message.
	subject, head, body, err := events.Encode(
		events.Meta{ID: either(l.ID, p.batch+"-"+strconv.Itoa(number)), Source: publishSource},
		events.EpisodeRecorded{
			Scope: scope.Scope{
				Project: p.project, User: either(l.User, p.command.User),
				Agent: either(l.Agent, p.command.Agent), Session: either(l.Session, p.command.Session),
			},
			Role: events.Role(l.Role), Content: l.Content, Timestamp: l.Timestamp, Metadata: l.Metadata,
		})
	if err != nil {
		return nil, err
	}
	return &nats.Msg{Subject: subject, Header: head, Data: body}, nil
}

func either(a, b string) string {
	if a != "" {
		return a
	}
	return b
}
