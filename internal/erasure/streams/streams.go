// Package streams erases from the streams of an external NATS server, as far as requests can.
package streams

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"palimpsest/internal/erasure"
	"palimpsest/internal/failpoint"
	"palimpsest/internal/topology"
)

// ErrRead refuses to erase from streams while services are connected: a service could
// write again what it has in its memory.
var ErrRead = errors.New("services are connected to the streams: stop them first")

const (
	// stillWait is how long [Server.Still] waits for processes that end. The server notices
	// after a moment that the connection of one that was killed is lost.
	stillWait  = 5 * time.Second
	stillAgain = 200 * time.Millisecond
	// flushLimit bounds a round trip to the server.
	flushLimit = 5 * time.Second
	// subjectsLimit bounds the list of a stream's subjects. The server lists them anew
	// for each page of 100,000.
	subjectsLimit = 5 * time.Minute
)

// Server has the streams of an external NATS server, to erase from them.
type Server struct {
	conn *nats.Conn
	js   jetstream.JetStream
	decl topology.Declaration
}

var _ erasure.Streams = (*Server)(nil)

// Of returns the declared streams of the server of a connection.
func Of(conn *nats.Conn, js jetstream.JetStream, decl topology.Declaration) *Server {
	return &Server{conn, js, decl}
}

// Still returns nil once no process with a service is connected to the broker, and
// [ErrRead] with the names of the services where one still is.
func (s *Server) Still(ctx context.Context) error {
	limit, cancel := context.WithTimeout(ctx, stillWait)
	defer cancel()
	for {
		present, err := s.present()
		if err != nil {
			return fmt.Errorf("look for services: %w", s.refused(err))
		}
		if len(present) == 0 {
			return nil
		}
		select {
		case <-time.After(stillAgain):
		case <-limit.Done():
			return s.refused(fmt.Errorf("%w (%s)", ErrRead, strings.Join(present, ", ")))
		}
	}
}

// present are the services of which a process is connected. The server answers a request
// without a subscriber before it answers the ping that follows.
func (s *Server) present() (names []string, err error) {
	names = topology.Processes()
	inbox, absent := s.conn.NewInbox(), make(chan *nats.Msg, len(names))
	answers, err := s.conn.ChanSubscribe(inbox+".*", absent)
	if err != nil {
		return nil, err
	}
	defer func() { _ = answers.Unsubscribe() }() // the connection may be lost
	for _, name := range names {
		if err := s.conn.PublishRequest(topology.Presence(name), inbox+"."+name, nil); err != nil {
			return nil, err
		}
	}
	if err := s.conn.FlushTimeout(flushLimit); err != nil {
		return nil, err
	}
	for {
		select {
		case m := <-absent:
			names = slices.DeleteFunc(names, func(name string) bool { return m.Subject == inbox+"."+name })
		default:
			return names, nil
		}
	}
}

// Rewrite removes the messages of the declared streams that edit leaves out, so that their
// bytes leave the files of the server: a secure delete fills the record with random
// bytes and replaces the file of its block. It returns how many messages of each stream
// it removed or changed, and the unreached data. It is idempotent. While a
// service is connected it returns [ErrRead]. The price of each
// message is that of writing its block, at most 8 MiB.
//
// A secure delete takes messages that the stream still has. The file of a queue also
// holds those that were acknowledged, until its block is dropped. So a stream that is
// empty is purged, which replaces all of its files.
func (s *Server) Rewrite(ctx context.Context, _ string, edit erasure.Edit) (counts map[string]uint64, beyond []string, err error) {
	if err := s.Still(ctx); err != nil {
		return nil, nil, err
	}
	counts = map[string]uint64{}
	for _, d := range s.decl.Streams {
		name := d.Config.Name
		stream, err := s.js.Stream(ctx, name)
		if err != nil {
			return counts, beyond, fmt.Errorf("erase from %s: %w", name, s.refused(err))
		}
		n, err := s.edit(ctx, stream, edit, true)
		if err != nil {
			return counts, beyond, fmt.Errorf("erase from %s: %w", name, s.refused(err))
		}
		if n > 0 {
			counts[name] = n
		}
		left, err := sweep(ctx, stream)
		if err != nil {
			return counts, beyond, fmt.Errorf("erase from %s: %w", name, s.refused(err))
		}
		beyond = append(beyond, left...)
	}
	beyond = append(beyond, "NATS server: mirrors and backups of the streams; where it encrypts its files (a cipher is configured), the encrypted records themselves")
	return counts, beyond, nil
}

// refused adds to an error that the login lacks a permission. The server does not answer such a
// request.
func (s *Server) refused(err error) error {
	if last := s.conn.LastError(); errors.Is(last, nats.ErrPermissionViolation) {
		return errors.Join(err, last)
	}
	return err
}

// Count returns how many messages of the declared streams edit would leave out or change,
// or [ErrRead] where a service has connected meanwhile.
func (s *Server) Count(ctx context.Context, edit erasure.Edit) (left uint64, err error) {
	if err := s.Still(ctx); err != nil {
		return 0, err
	}
	for _, d := range s.decl.Streams {
		stream, err := s.js.Stream(ctx, d.Config.Name)
		if err != nil {
			return left, fmt.Errorf("count messages of %s: %w", d.Config.Name, err)
		}
		n, err := s.edit(ctx, stream, edit, false)
		if err != nil {
			return left, fmt.Errorf("count messages of %s: %w", d.Config.Name, err)
		}
		left += n
	}
	return left, nil
}

// LastSequence is that of the newest message that a stream has had.
func (s *Server) LastSequence(ctx context.Context, stream string) (uint64, error) {
	found, err := s.js.Stream(ctx, stream)
	if err != nil {
		return 0, fmt.Errorf("read the end of %s: %w", stream, err)
	}
	return found.CachedInfo().State.LastSeq, nil
}

// Publish publishes a message.
func (s *Server) Publish(ctx context.Context, subject string, header map[string][]string, body []byte) error {
	_, err := s.js.PublishMsg(ctx, &nats.Msg{Subject: subject, Header: header, Data: body})
	return err
}

// edit applies an edit to the messages of a stream, or only counts where it would. The
// subject tells whether a message is left out, so only those of such subjects are read,
// and the API keys, whose data change.
func (s *Server) edit(ctx context.Context, stream jetstream.Stream, edit erasure.Edit, apply bool) (edited uint64, err error) {
	listing, cancel := context.WithTimeout(ctx, subjectsLimit)
	defer cancel()
	info, err := stream.Info(listing, jetstream.WithSubjectFilter(">"))
	if err != nil {
		return 0, err
	}
	name := info.Config.Name
	for subject := range info.State.Subjects {
		if _, keep := edit(name, subject, 0, nil); keep && name != topology.StreamKeys {
			continue
		}
		for next := uint64(1); ; {
			m, err := stream.GetMsg(ctx, next, jetstream.WithGetMsgSubject(subject))
			if errors.Is(err, jetstream.ErrMsgNotFound) {
				break
			}
			if err != nil {
				return edited, err
			}
			next = m.Sequence + 1
			kept, keep := edit(name, subject, m.Sequence, m.Data)
			switch {
			case keep && bytes.Equal(kept, m.Data):
				continue
			case apply && keep:
				err = s.replace(ctx, m, kept)
			case apply:
				err = stream.SecureDeleteMsg(ctx, m.Sequence)
			}
			if changed(err) {
				continue // the newer message of the subject is the next one
			}
			if err != nil && !errors.Is(err, jetstream.ErrMsgNotFound) {
				return edited, err
			}
			if edited++; apply {
				failpoint.Reach(failpoint.Erasure, failpoint.Removed)
			}
		}
	}
	return edited, nil
}

// replace publishes the newest message of a subject with other data.
func (s *Server) replace(ctx context.Context, m *jetstream.RawStreamMsg, data []byte) error {
	_, err := s.js.PublishMsg(ctx, &nats.Msg{Subject: m.Subject, Data: data}, jetstream.WithExpectLastSequencePerSubject(m.Sequence))
	return err
}

// changed reports whether a message was not replaced because the subject has a newer one.
func changed(err error) bool {
	refused := (*jetstream.APIError)(nil)
	return errors.As(err, &refused) && refused.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence
}

// sweep has the server write the files of a stream anew as far as a request makes it, and
// returns what stays. Purging up to a message that is the first one removes none: the
// server drops the stream's index, which names subjects, and makes it again.
func sweep(ctx context.Context, s jetstream.Stream) (beyond []string, err error) {
	info, err := s.Info(ctx)
	if err != nil {
		return nil, err
	}
	cfg, state := info.Config, info.State
	switch {
	case state.Msgs == 0 && state.LastSeq > 0:
		// Those that are published meanwhile are behind this sequence, and stay.
		err = s.Purge(ctx, jetstream.WithPurgeSequence(state.LastSeq+1))
	case state.FirstSeq > 1: // purging up to 1 does nothing
		err = s.Purge(ctx, jetstream.WithPurgeSequence(state.FirstSeq))
	}
	say := func(format string, args ...any) {
		beyond = append(beyond, cfg.Name+" on the NATS server: "+fmt.Sprintf(format, args...))
	}
	switch {
	case state.Msgs == 0:
	case cfg.Name == topology.StreamKeys && state.LastSeq > state.Msgs:
		say("earlier entries of the API keys, which may name the user, until the server drops their block")
	case cfg.Retention == jetstream.WorkQueuePolicy && state.LastSeq > state.Msgs:
		say("messages that were acknowledged before, until the queue, where %d messages wait, is empty and its block is dropped", state.Msgs)
	case state.FirstSeq == 1 && state.NumDeleted > 0:
		say("the index of the stream, which names subjects, until the server writes it again, within 3 minutes")
	case (cfg.MaxAge > 0 || cfg.MaxBytes > 0) && state.FirstSeq > 1:
		say("messages that expired before, until the server drops their block")
	}
	if cfg.Replicas > 1 {
		say("the log of its raft group, until the server compacts it")
	}
	return beyond, err
}
