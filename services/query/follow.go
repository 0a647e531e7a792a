package query

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"palimpsest/internal/httpserver"
	"palimpsest/pkg/api"
	"palimpsest/pkg/events"
)

const (
	// eventStream is the media type of server-sent events.
	eventStream = "text/event-stream"
	// maxFollowers bounds the clients that follow at a time. One that does not
	// read holds what was read ahead for it, some 6 MiB where effects are as large
	// as can be, until it is cut off. maxOfOne bounds those of one address: half,
	// since a proxy lends its own to many.
	maxFollowers = 64
	maxOfOne     = maxFollowers / 2
	// followAhead is how many events are made before they can be sent.
	followAhead = 1
	// retryEvents is what a browser waits before it connects again.
	retryEvents = 2 * time.Second
)

// followers has a place for each client that follows AUDIT.
type followers struct {
	mu    sync.Mutex
	count int
	of    map[string]int // by address
}

// enter takes a place; leave gives it back. How many follow already is the reason
// why there is none.
func (f *followers) enter(remote string) (leave func(), most int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.count >= maxFollowers:
		return nil, maxFollowers
	case f.of[remote] >= maxOfOne:
		return nil, maxOfOne
	case f.of == nil:
		f.of = make(map[string]int)
	}
	f.count++
	f.of[remote]++
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.count--
		if f.of[remote]--; f.of[remote] == 0 {
			delete(f.of, remote)
		}
	}, 0
}

// sendEvents answers with an event per effect: its id is the sequence, its data
// the line that a replay has. An event "end" says that nothing follows, an event
// "problem" why nothing more can be sent; an answer that ends without either (the
// server stops) is to be resumed.
func (s *Service) sendEvents(remote string, effects func(context.Context) iter.Seq2[events.Event[events.EffectCommitted], error]) (*huma.StreamResponse, error) {
	leave, most := s.followers.enter(remote)
	if leave == nil {
		return nil, api.NewProblem(http.StatusTooManyRequests, api.CodeRateLimited, "", "%d clients follow already", most)
	}
	return &huma.StreamResponse{Body: func(c huma.Context) {
		defer leave()
		c.SetHeader("Content-Type", eventStream)
		c.SetHeader("Cache-Control", "no-store")
		c.SetHeader("X-Accel-Buffering", "no") // proxies must not wait for the end
		ctx, cancel := context.WithCancel(c.Context())
		defer cancel()
		f := follower{to: newCounted(c), heartbeat: s.config.heartbeat(), stopping: httpserver.Stopping(ctx)}
		defer f.to.done()
		if err := f.send(ctx, effects); err != nil {
			s.failed(ctx, err)
			panic(http.ErrAbortHandler)
		}
	}}, nil
}

// follower is one client that follows.
type follower struct {
	to        *counted
	heartbeat time.Duration
	stopping  <-chan struct{}
	last      uint64 // sequence of the last event sent
}

// sequenced is an event as it is sent, or why there are no more.
type sequenced struct {
	sequence uint64
	text     []byte
	err      error
}

// send returns nil at the end of the effects and when the server stops. It flushes
// when no further event is ready.
func (f *follower) send(ctx context.Context, effects func(context.Context) iter.Seq2[events.Event[events.EffectCommitted], error]) error {
	ctx, cancel := context.WithCancel(ctx)
	made := make(chan sequenced, followAhead)
	go func() { defer close(made); makeEvents(ctx, effects(ctx), made) }()
	defer func() {
		cancel()
		for range made { // until its maker has ended
		}
	}()
	if err := f.write([]byte("retry: " + strconv.FormatInt(retryEvents.Milliseconds(), 10) + "\n\n")); err != nil {
		return err
	}
	beat := time.NewTicker(f.heartbeat)
	defer beat.Stop()
	for {
		if len(made) == 0 {
			if err := f.to.Flush(); err != nil {
				return err
			}
		}
		select {
		case e, more := <-made:
			switch {
			case !more:
				return f.end()
			case e.err != nil:
				return errors.Join(e.err, f.explain(e.err))
			}
			if err := f.write(e.text); err != nil {
				return err
			}
			f.last = e.sequence
		case <-beat.C:
			if err := f.write([]byte(":\n\n")); err != nil {
				return err
			}
		case <-f.stopping:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (f *follower) write(text []byte) error {
	_, err := f.to.Write(text)
	return err
}

// explain sends the problem that an error stands for, if it stands for one.
func (f *follower) explain(err error) error {
	p := explained(err)
	if p == nil {
		return nil
	}
	text, err := json.Marshal(p)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(f.to, "event: problem\ndata: %s\n\n", text); err != nil {
		return err
	}
	return f.to.Flush()
}

func (f *follower) end() error {
	if _, err := fmt.Fprintf(f.to, "event: end\ndata: {\"sequence\":%d}\n\n", f.last); err != nil {
		return err
	}
	return f.to.Flush()
}

// makeEvents reads effects ahead of the client, up to the capacity of into.
func makeEvents(ctx context.Context, effects iter.Seq2[events.Event[events.EffectCommitted], error], into chan<- sequenced) {
	for e, err := range effects {
		made := sequenced{sequence: e.Sequence, err: err}
		if err == nil {
			made.text, made.err = event(e)
		}
		select {
		case into <- made:
		case <-ctx.Done():
			return
		}
		if made.err != nil {
			return
		}
	}
}

// event writes an effect as a server-sent event; JSON has no line breaks.
func event(e events.Event[events.EffectCommitted]) ([]byte, error) {
	line, err := auditLine(e)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	_, _ = io.WriteString(&b, "id: "+strconv.FormatUint(e.Sequence, 10)+"\ndata: ")
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(line); err != nil {
		return nil, err
	}
	b.WriteByte('\n')
	return b.Bytes(), nil
}
