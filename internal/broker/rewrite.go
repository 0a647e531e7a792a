package broker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/klauspost/compress/s2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats-server/v2/server/archive"

	"palimpsest/internal/failpoint"
)

// The directories of [Rewrite], within that of the broker.
const (
	jetstreamDir = "jetstream"  // of the server
	draftDir     = "rewrite"    // copies under construction
	finishedDir  = "rewritten"  // complete copies; the streams of before may be gone
	droppedFile  = "drops.json" // what was left out, by stream
)

// Drop reports whether a stored message is left out of a copy. subject is the
// one under which the stream stores it.
type Drop func(stream, subject string, data []byte) bool

// Rewrite copies the streams of a broker that is not running into new files,
// without the messages that drop names, puts the copies in the place of the old
// files, and returns the number of messages left out of each stream. Messages keep
// their sequences, times and headers, and consumers go on behind the last message
// that was acknowledged with all before it.
//
// The old files hold more than the streams do: a deleted or acknowledged message
// stays in its block until the server rewrites the block, which it may never do.
// The new files hold nothing that drop names.
//
// Killed at any moment it leaves the old files or the new ones, whole;
// [FinishRewrite], or another Rewrite, completes the change. It needs as much free
// space as the streams occupy.
func Rewrite(ctx context.Context, cfg EmbeddedConfig, drop Drop) (map[string]uint64, error) {
	dropped, err := FinishRewrite(cfg.Dir)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(cfg.Dir, jetstreamDir)); errors.Is(err, fs.ErrNotExist) {
		return dropped, nil
	}
	more, err := copyStreams(ctx, cfg, drop)
	if err != nil {
		return nil, fmt.Errorf("rewrite streams: %w", err)
	}
	for stream, n := range more {
		dropped[stream] += n
	}
	_, err = FinishRewrite(cfg.Dir)
	return dropped, err
}

// FinishRewrite completes a rewrite whose copies are complete, and removes copies
// that are not. It must run before a broker is started on a directory whose rewrite
// was interrupted. It returns what the completed rewrite left out.
func FinishRewrite(dir string) (map[string]uint64, error) {
	dropped := map[string]uint64{}
	finished, live := filepath.Join(dir, finishedDir), filepath.Join(dir, jetstreamDir)
	raw, err := os.ReadFile(filepath.Join(finished, droppedFile))
	switch {
	case err == nil:
		if err := json.Unmarshal(raw, &dropped); err != nil {
			return nil, fmt.Errorf("finish rewrite: %w", err)
		}
	case !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("finish rewrite: %w", err)
	}
	copies := filepath.Join(finished, jetstreamDir)
	_, err = os.Stat(copies)
	switch {
	case err == nil:
		err = errors.Join(os.RemoveAll(live), syncDir(dir))
		failpoint.Reach(failpoint.Erasure, failpoint.Removed)
		if err == nil {
			err = errors.Join(os.Rename(copies, live), syncDir(dir))
		}
	case errors.Is(err, fs.ErrNotExist):
		err = nil
	}
	if err == nil {
		err = errors.Join(os.RemoveAll(finished), os.RemoveAll(filepath.Join(dir, draftDir)), syncDir(dir))
	}
	if err != nil {
		return nil, fmt.Errorf("finish rewrite: %w", err)
	}
	return dropped, nil
}

// copyStreams makes complete copies.
func copyStreams(ctx context.Context, cfg EmbeddedConfig, drop Drop) (dropped map[string]uint64, err error) {
	cfg.Private = true
	from, err := StartEmbedded(cfg)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, from.Shutdown(context.WithoutCancel(ctx))) }()
	draft := filepath.Join(cfg.Dir, draftDir)
	if err := os.MkdirAll(draft, 0o700); err != nil {
		return nil, err
	}
	if dropped, err = from.copyTo(ctx, draft, drop); err != nil {
		return nil, err
	}
	raw, err := json.Marshal(dropped)
	if err != nil {
		return nil, err
	}
	if err := writePrivate(filepath.Join(draft, droppedFile), string(raw)); err != nil {
		return nil, err
	}
	if err := syncTree(draft); err != nil {
		return nil, err
	}
	failpoint.Reach(failpoint.Erasure, failpoint.Copied)
	return dropped, errors.Join(os.Rename(draft, filepath.Join(cfg.Dir, finishedDir)), syncDir(cfg.Dir))
}

// copyTo copies every stream into a server on another directory.
func (e *Embedded) copyTo(ctx context.Context, dir string, drop Drop) (map[string]uint64, error) {
	to := &Embedded{cfg: EmbeddedConfig{Dir: dir, Private: true, Logger: e.cfg.Logger, Space: e.cfg.Space}.withDefaults()}
	to.port.Store(server.RANDOM_PORT)
	if err := to.look(); err != nil {
		return nil, err
	}
	r, err := to.boot()
	if err != nil {
		return nil, err
	}
	defer halt(r.srv)
	dropped := map[string]uint64{}
	names := e.js.StreamNames(ctx)
	for name := range names.Name() {
		n, err := e.copyStream(ctx, r.own, name, drop)
		if err != nil {
			return nil, fmt.Errorf("copy stream %s: %w", name, err)
		}
		if n > 0 {
			dropped[name] = n
		}
	}
	return dropped, names.Err()
}

// copyStream copies one stream by the server's own backup, whose entries are
// messages, and returns how many it left out.
func (e *Embedded) copyStream(ctx context.Context, to *server.Account, name string, drop Drop) (uint64, error) {
	config, backup, err := e.backup(ctx, name)
	if err != nil {
		return 0, err
	}
	defer backup.Close() //nolint:errcheck // it is read to its end, or given up
	out, in := io.Pipe()
	var dropped uint64
	filtered := make(chan error, 1)
	go func() {
		var err error
		dropped, err = filter(in, backup, func(subject string, data []byte) bool { return drop(name, subject, data) })
		in.CloseWithError(err)
		filtered <- err
	}()
	_, err = to.RestoreStreamV2(config, out)
	out.CloseWithError(err)
	return dropped, errors.Join(err, <-filtered)
}

// filter copies a backup without the messages that drop names, and returns their
// number.
func filter(to io.Writer, from io.Reader, drop func(subject string, data []byte) bool) (dropped uint64, err error) {
	packed := s2.NewWriter(to)
	defer func() { err = errors.Join(err, packed.Close()) }()
	in, out := archive.NewReader(s2.NewReader(from)), archive.NewWriter(packed)
	state := server.StreamState{}
	for entries := 0; ; entries++ {
		h, err := in.Next()
		if err != nil {
			return dropped, err
		}
		body, err := io.ReadAll(in)
		if err != nil {
			return dropped, err
		}
		end := h.Sequence == 0 && h.Name == ""
		switch {
		case entries == 0:
			err = json.Unmarshal(body, &state)
		case h.Sequence > 0 && drop(h.Name, body[h.HeaderSize:]):
			dropped++
			continue
		case h.Sequence == 0 && !end:
			if body, err = rewound(body); err == nil {
				h.PayloadSize = int64(len(body))
			}
		}
		if err == nil {
			err = out.WriteHeader(h)
		}
		if err == nil {
			_, err = out.Write(body)
		}
		if err != nil || end {
			return dropped, err
		}
	}
}

// rewound is the state of a consumer that has delivered nothing behind the last
// message that was acknowledged with all before it: what it had delivered since
// may be gone. It delivers the rest again.
func rewound(body []byte) ([]byte, error) {
	var c server.SnapshotConsumerState
	if err := json.Unmarshal(body, &c); err != nil {
		return nil, fmt.Errorf("read consumer: %w", err)
	}
	if c.ConsumerState != nil {
		c.Delivered, c.Pending, c.Redelivered = c.AckFloor, nil, nil
	}
	return json.Marshal(c)
}

// backup asks the server for a backup of a stream, as archive entries in S2.
func (e *Embedded) backup(ctx context.Context, name string) (*server.StreamConfig, io.ReadCloser, error) {
	inbox := e.conn.NewInbox()
	chunks, err := e.conn.SubscribeSync(inbox)
	if err != nil {
		return nil, nil, err
	}
	stop := func() { _ = chunks.Unsubscribe() }
	request, err := json.Marshal(server.JSApiStreamSnapshotRequest{DeliverSubject: inbox})
	if err != nil {
		stop()
		return nil, nil, err
	}
	asked, cancel := context.WithTimeout(ctx, RequestLimit)
	defer cancel()
	reply, err := e.conn.RequestWithContext(asked, fmt.Sprintf(server.JSApiStreamSnapshotT, name), request)
	var answer server.JSApiStreamSnapshotResponse
	if err == nil {
		err = json.Unmarshal(reply.Data, &answer)
	}
	if err == nil && answer.Error != nil {
		err = answer.Error
	}
	if err != nil {
		stop()
		return nil, nil, fmt.Errorf("ask for a backup: %w", err)
	}
	out, in := io.Pipe()
	go func() {
		defer stop()
		for {
			m, err := chunks.NextMsgWithContext(ctx)
			if err == nil && len(m.Data) == 0 {
				if status := m.Header.Get("Status"); status != "" && status != "204" {
					err = fmt.Errorf("back up: %s %s", status, m.Header.Get("Description"))
				} else {
					err = io.EOF
				}
			}
			if err == nil {
				_, err = in.Write(m.Data)
			}
			if err == nil && m.Reply != "" {
				err = m.Respond(nil)
			}
			if err != nil {
				in.CloseWithError(err)
				return
			}
		}
	}()
	return answer.Config, out, nil
}

// syncTree forces files and directories to the disk.
func syncTree(root string) error {
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() || d.Type().IsRegular() {
			return syncDir(path)
		}
		return nil
	})
}

func syncDir(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
