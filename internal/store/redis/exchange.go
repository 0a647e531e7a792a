package redis

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"palimpsest/internal/store"
)

// searching is a command whose reply the driver hands over unread: it would make
// maps of maps of it, which takes longer than all else that is done with it here.
type searching struct {
	*goredis.RawWriteToCmd
	reply *bytes.Buffer
}

// maxKept bounds the buffers that are kept for the next search, in bytes.
const maxKept = 1 << 20

var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

func newSearching(ctx context.Context, args []any) searching {
	reply, _ := buffers.Get().(*bytes.Buffer)
	reply.Reset()
	return searching{goredis.NewRawWriteToCmd(ctx, reply, args...), reply}
}

// answer stands in the buffer.
func (s searching) answer() (answer, error) {
	if err := s.Err(); err != nil {
		return answer{}, err
	}
	a, err := parseAnswer(s.reply.Bytes())
	a.reply = s.reply
	return a, err
}

// isSearch: the command is FT.SEARCH or FT.AGGREGATE.
func isSearch(args []any) bool { return args[0] == searchCommand || args[0] == aggregateCommand }

func command(ctx context.Context, args []any) goredis.Cmder {
	if isSearch(args) {
		return newSearching(ctx, args)
	}
	return goredis.NewCmd(ctx, args...)
}

func replyOf(c goredis.Cmder) (reply any, err error) {
	switch c := c.(type) {
	case searching:
		reply, err = c.answer()
	case *goredis.Cmd:
		reply, err = c.Result()
	}
	if err = explain(err); err != nil {
		return nil, err
	}
	return reply, nil
}

// The driver neither repeats what holds a search, whose reply it cannot take back, nor
// sees what the server says in it. Here it is repeated as often as the driver does
// that, and after as long.
const (
	maxRepeats  = 3
	firstRepeat = 8 * time.Millisecond
)

// repeats tells whether commands that failed are worth another attempt: the server was
// away, or the connection broke behind them. One that could not be made was the
// driver's to repeat.
func repeats(ctx context.Context, commands [][]any, err error) bool {
	if err == nil || ctx.Err() != nil || !slices.ContainsFunc(commands, isSearch) {
		return false
	}
	if errors.Is(err, store.ErrAway) {
		return true
	}
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" {
		return false
	}
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || op != nil
}

// pause waits before an attempt, longer before each.
func pause(ctx context.Context, attempt int) {
	select {
	case <-ctx.Done():
	case <-time.After(firstRepeat << attempt):
	}
}
