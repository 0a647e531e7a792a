package cli

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"palimpsest/internal/engine"
)

// publication is one run of publish.
type publication struct {
	command *publishCommand
	js      jetstream.JetStream
	// connected reports whether the server answers.
	connected func() bool
	// tell prints what the user should know meanwhile.
	tell    func(text string)
	project string
	batch   string // prefix of the ids of lines that bring none
	waiting []sent
	acked   int
	count   func()
}

// sent is a line that waits for its acknowledgement.
type sent struct {
	line int
	msg  *nats.Msg
	// future is nil once it has answered: it answers once.
	future jetstream.PubAckFuture
}

// all publishes every line and returns how many were acknowledged. After an error
// it waits for the acknowledgements of the lines that it has sent.
func (p *publication) all(ctx context.Context, in io.Reader, count func()) (int, error) {
	p.count = count
	err := p.send(ctx, in)
	if err == nil {
		err = p.settle(ctx, 0)
	} else {
		p.drain()
	}
	return p.acked, err
}

func (p *publication) send(ctx context.Context, in io.Reader) error {
	lines := read(ctx, in)
	for {
		select {
		case <-ctx.Done():
			return errInterrupted
		case l, more := <-lines:
			if !more {
				return nil
			}
			if l.err != nil {
				return l.err
			}
			msg, err := p.message(l.number, l.text)
			if err != nil {
				return fmt.Errorf("line %d: %w", l.number, err)
			}
			if err := p.push(ctx, sent{line: l.number, msg: msg}); err != nil {
				return err
			}
			if err := p.settle(ctx, publishWindow/2); err != nil {
				return err
			}
		}
	}
}

// push sends a message behind those that wait.
func (p *publication) push(ctx context.Context, s sent) (err error) {
	s.future, err = p.js.PublishMsgAsync(s.msg)
	p.waiting = append(p.waiting, s)
	if err != nil {
		return p.resend(ctx, err)
	}
	return nil
}

// settle waits for acknowledgements, oldest first, until at most left wait.
func (p *publication) settle(ctx context.Context, left int) error {
	for len(p.waiting) > left {
		if err := p.answer(&p.waiting[0]); err != nil {
			if err := p.resend(ctx, err); err != nil {
				return err
			}
			continue
		}
		p.waiting = p.waiting[1:]
	}
	return nil
}

// answer waits for the acknowledgement of a message, which comes or fails within
// the limit of the library.
func (p *publication) answer(s *sent) error {
	future := s.future
	if s.future = nil; future == nil {
		return nats.ErrDisconnected
	}
	select {
	case <-future.Ok():
		p.acked++
		p.count()
		return nil
	case err := <-future.Err():
		return err
	}
}

// resendTries bounds how often messages are sent again to a server that answers and
// acknowledges none.
const resendTries = 20

// resend sends again, in order, the waiting messages that have no acknowledgement:
// their ids make a repetition harmless. It waits for the server without end.
func (p *publication) resend(ctx context.Context, err error) error {
	told := false
	for try := 0; ; {
		line := p.waiting[0].line
		if !engine.Away(err) {
			return fmt.Errorf("line %d: %w", line, err)
		}
		if try == resendTries {
			return fmt.Errorf("line %d: no acknowledgement (is Palimpsest running there?): %w", line, err)
		}
		if !told {
			told = true
			p.tell(fmt.Sprintf("line %d is not acknowledged: %v; waiting for the server, %d acknowledged so far", line, engine.Reason(err), p.acked))
		}
		select {
		case <-time.After(publishRetry):
		case <-ctx.Done():
			return errInterrupted
		}
		if !p.connected() {
			continue
		}
		try++
		before := len(p.waiting)
		if err = p.again(); len(p.waiting) < before {
			try = 0
		}
		if err == nil {
			p.tell(fmt.Sprintf("the server acknowledges again; going on behind line %d", line))
			return nil
		}
	}
}

// again takes the answers that are there, sends the rest once more, one by one, and
// returns the first error.
func (p *publication) again() error {
	left := make([]sent, 0, len(p.waiting))
	for _, s := range p.waiting {
		if p.answer(&s) != nil {
			left = append(left, s)
		}
	}
	p.waiting = left
	for len(p.waiting) > 0 {
		first := &p.waiting[0]
		var err error
		if first.future, err = p.js.PublishMsgAsync(first.msg); err == nil {
			err = p.answer(first)
		}
		if err != nil {
			return err
		}
		p.waiting = p.waiting[1:]
	}
	return nil
}

// drain counts the acknowledgements of messages that were sent before an error.
// While the server is away it waits for none.
func (p *publication) drain() {
	for _, s := range p.waiting {
		if s.future == nil || !p.connected() {
			break
		}
		_ = p.answer(&s) // the first error was returned
	}
	p.waiting = nil
}
