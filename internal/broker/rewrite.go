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

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"palimpsest/internal/failpoint"
)

// The directories of [Rewrite], within that of the broker.
const (
	jetstreamDir = "jetstream"  // of the server
	draftDir     = "rewrite"    // copies under construction
	finishedDir  = "rewritten"  // complete copies; the previous streams may be gone
	droppedFile  = "drops.json" // see rewritten
)

// Edit returns what a copy has in the place of the data of a stored message, and whether it
// has the message at all. subject is the one under which the stream stores it. Without a
// sequence and data, it tells whether any message of the subject may be left out.
type Edit = func(stream, subject string, sequence uint64, data []byte) (kept []byte, keep bool)

// rewritten is how much a complete rewrite left out or changed, by stream, and the job that it was
// done for.
type rewritten struct {
	Job     string            `json:"job"`
	Dropped map[string]uint64 `json:"dropped"`
}

// Stopped is a broker that is not running, on the directory of its configuration.
type Stopped struct{ EmbeddedConfig }

// Rewrite copies the streams into new files with the
// messages edited, puts the copies in the place of the old files, and returns the number
// of messages of each stream that were left out or changed. Messages keep
// their sequences, times and headers, and consumers go on behind the last message
// that was acknowledged with all before it.
//
// The old files hold more than the streams do: a deleted or acknowledged message
// stays in its block until the server rewrites the block, which it may never do.
// The new files hold nothing that edit leaves out.
//
// Killed at any moment it leaves the old files or the new ones, whole, and
// [ResumeRewrite] completes the change. Repeated for the same job it copies nothing
// again. It needs as much free space as the streams occupy.
func (s Stopped) Rewrite(ctx context.Context, job string, edit Edit) (counts map[string]uint64, beyond []string, err error) {
	if err := ResumeRewrite(s.Dir); err != nil {
		return nil, nil, err
	}
	finished := filepath.Join(s.Dir, finishedDir)
	before, err := readRewritten(finished)
	if err != nil || before.Job == job {
		return before.Dropped, nil, err
	}
	if err := os.RemoveAll(finished); err != nil {
		return nil, nil, fmt.Errorf("rewrite streams: %w", err)
	}
	if _, err := os.Stat(filepath.Join(s.Dir, jetstreamDir)); errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if counts, err = copyStreams(ctx, s.EmbeddedConfig, job, edit); err != nil {
		return nil, nil, fmt.Errorf("rewrite streams: %w", err)
	}
	return counts, nil, ResumeRewrite(s.Dir)
}

// ResumeRewrite completes a rewrite whose copies are complete, and removes copies
// that are not. It must run before a broker is started on a directory whose rewrite
// was interrupted, and does nothing otherwise. While another process runs a broker on
// the directory, or does the same, it returns [ErrInUse].
func ResumeRewrite(dir string) (err error) {
	own := Embedded{cfg: EmbeddedConfig{Dir: dir}}
	if err := own.takeDirectory(); err != nil {
		return fmt.Errorf("resume rewrite: %w", err)
	}
	defer func() { err = errors.Join(err, own.lock.Close()) }()
	live, copies := filepath.Join(dir, jetstreamDir), filepath.Join(dir, finishedDir, jetstreamDir)
	_, err = os.Stat(copies)
	switch {
	case err == nil:
		err = errors.Join(os.RemoveAll(live), syncFile(dir))
		failpoint.Reach(failpoint.Erasure, failpoint.Removed)
		if err == nil {
			err = errors.Join(os.Rename(copies, live), syncFile(dir))
		}
	case errors.Is(err, fs.ErrNotExist):
		err = nil
	}
	if err == nil {
		err = errors.Join(os.RemoveAll(filepath.Join(dir, draftDir)), syncFile(dir))
	}
	if err != nil {
		return fmt.Errorf("resume rewrite: %w", err)
	}
	return nil
}

func readRewritten(dir string) (out rewritten, err error) {
	raw, err := os.ReadFile(filepath.Join(dir, droppedFile))
	if errors.Is(err, fs.ErrNotExist) {
		return out, nil
	}
	if err == nil {
		err = json.Unmarshal(raw, &out)
	}
	if err != nil {
		return out, fmt.Errorf("read what a rewrite left out: %w", err)
	}
	return out, nil
}

// Count returns how many messages edit would change. Where there are any, a rewrite of the
// same job begins anew.
func (s Stopped) Count(ctx context.Context, edit Edit) (left uint64, err error) {
	err = inPrivate(ctx, s.EmbeddedConfig, func(e *Embedded) error {
		return e.eachStream(ctx, func(name string) error {
			_, backup, err := e.backup(ctx, name)
			if err != nil {
				return err
			}
			defer backup.Close() //nolint:errcheck // it is read to its end, or given up
			n, err := filter(io.Discard, backup, name, edit)
			left += n
			return err
		})
	})
	if err == nil && left > 0 {
		err = os.RemoveAll(filepath.Join(s.Dir, finishedDir))
	}
	if err != nil {
		return left, fmt.Errorf("count messages: %w", err)
	}
	return left, nil
}

// LastSequence is that of the newest message that a stream has had.
func (s Stopped) LastSequence(ctx context.Context, stream string) (last uint64, err error) {
	err = inPrivate(ctx, s.EmbeddedConfig, func(e *Embedded) error {
		found, err := e.js.Stream(ctx, stream)
		if err != nil {
			return fmt.Errorf("read the end of %s: %w", stream, err)
		}
		last = found.CachedInfo().State.LastSeq
		return nil
	})
	return last, err
}

// Publish publishes a message.
func (s Stopped) Publish(ctx context.Context, subject string, header map[string][]string, body []byte) error {
	return inPrivate(ctx, s.EmbeddedConfig, func(e *Embedded) error {
		_, err := e.js.PublishMsg(ctx, &nats.Msg{Subject: subject, Header: header, Data: body})
		return err
	})
}

// inPrivate runs a broker that serves use alone.
func inPrivate(ctx context.Context, cfg EmbeddedConfig, use func(*Embedded) error) error {
	cfg.Private = true
	e, err := StartEmbedded(cfg)
	if err != nil {
		return err
	}
	err = use(e)
	return errors.Join(err, e.Shutdown(context.WithoutCancel(ctx)))
}

func (e *Embedded) eachStream(ctx context.Context, use func(name string) error) error {
	names := e.js.StreamNames(ctx)
	var all []string
	for name := range names.Name() {
		all = append(all, name)
	}
	if err := names.Err(); err != nil {
		return fmt.Errorf("list streams: %w", err)
	}
	for _, name := range all {
		if err := use(name); err != nil {
			return fmt.Errorf("stream %s: %w", name, err)
		}
	}
	return nil
}

// copyStreams makes complete copies.
func copyStreams(ctx context.Context, cfg EmbeddedConfig, job string, edit Edit) (map[string]uint64, error) {
	draft := filepath.Join(cfg.Dir, draftDir)
	out := rewritten{Job: job}
	err := inPrivate(ctx, cfg, func(from *Embedded) (err error) {
		if err := os.MkdirAll(draft, 0o700); err != nil {
			return err
		}
		out.Dropped, err = from.copyTo(ctx, draft, edit)
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := keepIdentity(cfg.Dir, draft); err != nil {
		return nil, err
	}
	raw, err := json.Marshal(out)
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
	return out.Dropped, errors.Join(os.Rename(draft, filepath.Join(cfg.Dir, finishedDir)), syncFile(cfg.Dir))
}

// keepIdentity gives the copies the files that say what their streams are. A restored
// stream is otherwise created again, and readers identify a stream by its creation time.
func keepIdentity(from, to string) error {
	streams := filepath.Join(jetstreamDir, ownAccount, "streams")
	files, err := filepath.Glob(filepath.Join(from, streams, "*", server.JetStreamMetaFile))
	if err != nil {
		return err
	}
	sums, err := filepath.Glob(filepath.Join(from, streams, "*", server.JetStreamMetaFileSum))
	if err != nil {
		return err
	}
	for _, file := range append(files, sums...) {
		raw, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		stream := filepath.Base(filepath.Dir(file))
		if err := os.WriteFile(filepath.Join(to, streams, stream, filepath.Base(file)), raw, 0o600); err != nil { //nolint:gosec // both are directories of ours
			return err
		}
	}
	return nil
}

// copyTo copies every stream into a server on another directory.
func (e *Embedded) copyTo(ctx context.Context, dir string, edit Edit) (map[string]uint64, error) {
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
	err = e.eachStream(ctx, func(name string) error {
		n, err := e.copyStream(ctx, r.own, name, edit)
		if n > 0 {
			dropped[name] = n
		}
		return err
	})
	return dropped, err
}

// syncTree forces files and directories to the disk.
func syncTree(root string) error {
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() || d.Type().IsRegular() {
			return syncFile(path)
		}
		return nil
	})
}

func syncFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
