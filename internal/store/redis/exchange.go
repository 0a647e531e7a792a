package redis

import (
	"bytes"
	"context"
	"errors"
	"sync"

	goredis "github.com/redis/go-redis/v9"
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

// command is what the driver is given. It sends a search once, so that where a
// connection broke it is sent again as one that the driver repeats as it does others.
func command(ctx context.Context, args []any, again bool) goredis.Cmder {
	switch {
	case !isSearch(args):
		return goredis.NewCmd(ctx, args...)
	case again:
		return goredis.NewRawCmd(ctx, args...)
	}
	return newSearching(ctx, args)
}

func replyOf(c goredis.Cmder) (reply any, err error) {
	switch c := c.(type) {
	case searching:
		reply, err = c.answer()
	case *goredis.RawCmd:
		var raw []byte
		if raw, err = c.Result(); err == nil {
			reply, err = parseAnswer(raw)
		}
	case *goredis.Cmd:
		reply, err = c.Result()
	}
	if err = explain(err); err != nil {
		return nil, err
	}
	return reply, nil
}

// broken: a search got no answer, not even that of an error.
func broken(ctx context.Context, sent []goredis.Cmder) bool {
	for _, c := range sent {
		if _, ok := c.(searching); ok && c.Err() != nil {
			return ctx.Err() == nil && !errors.As(c.Err(), new(goredis.Error))
		}
	}
	return false
}
