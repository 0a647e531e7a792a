package app

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"palimpsest/internal/broker"
	"palimpsest/internal/memory"
	"palimpsest/internal/store/sqlite"
	"palimpsest/internal/tail"
	"palimpsest/internal/terminal"
	"palimpsest/internal/topology"
	"palimpsest/pkg/events"
)

// Carried counts the messages of an export or an import of everything.
type Carried struct {
	Episodes uint64 `json:"episodes"`
	Audit    uint64 `json:"audit"`
	// Digest is that of the canonical export of all projects.
	Digest string `json:"digest"`
}

// carriedLine is a line of such an export: one message of a stream, or, last, the
// counts, which tell a whole export from a part of one.
type carriedLine struct {
	Stream  string          `json:"stream,omitempty"`
	Subject string          `json:"subject,omitempty"`
	Header  nats.Header     `json:"header,omitempty"`
	Data    json.RawMessage `json:"data,omitempty"`
	End     *Carried        `json:"end,omitempty"`
}

const (
	// carryWindow is how many messages of an import may wait for their
	// acknowledgement.
	carryWindow = 256
	// carryPatience bounds the wait for the next message of a stream, and for an
	// acknowledgement.
	carryPatience = 30 * time.Second
	// carryLine bounds a line, in bytes.
	carryLine = 64 << 20
)

// ExportAll writes all episodes and all records of AUDIT, of the Palimpsest whose
// data directory is data. It must be idle or stopped: the digest is that of its store
// at the end. An AUDIT that was trimmed is refused.
func (inv *Invocation) ExportAll(data string, to io.Writer) (out Carried, err error) {
	cfg, _, err := inv.Configuration(map[string]string{"data": data})
	if err != nil {
		return out, err
	}
	s := &sources{inv: inv, cfg: cfg}
	defer func() { err = errors.Join(plain(*cfg, err), s.close()) }()
	for _, open := range []func() error{s.openStreams, s.openStore} {
		if err := open(); err != nil {
			return out, err
		}
	}
	enc := json.NewEncoder(to)
	enc.SetEscapeHTML(false)
	if out.Episodes, err = s.exportEpisodes(enc); err != nil {
		return out, err
	}
	if out.Audit, err = s.exportAudit(enc); err != nil {
		return out, err
	}
	if out.Digest, err = digestOf(inv.ctx, cfg, false); err != nil {
		return out, err
	}
	return out, enc.Encode(carriedLine{End: &out})
}

// exportEpisodes writes the episodes as they were stored, with their ids and times,
// which some messages of the stream take from the stream itself.
func (s *sources) exportEpisodes(enc *json.Encoder) (count uint64, err error) {
	at, err := s.out.Episodes(s.inv.ctx)
	if err != nil {
		return 0, err
	}
	step, end := s.out.Part("episodes", at.Messages)
	defer end()
	return count, errors.Join(err, s.out.Said(s.inv.ctx, func(e memory.Episode) error {
		count++
		step(1)
		subject, header, body, err := events.Encode(events.Meta{
			ID: e.ID, Source: e.Source, CorrelationID: e.CorrelationID, Time: e.ArrivedAt,
		}, recordedOf(e))
		if err != nil {
			return err
		}
		return enc.Encode(carriedLine{Stream: topology.StreamEpisodes, Subject: subject, Header: nats.Header(header), Data: body})
	}))
}

func recordedOf(e memory.Episode) events.EpisodeRecorded {
	out := events.EpisodeRecorded{
		Scope: e.Scope, Role: e.Role, Content: e.Content, Timestamp: events.Timestamp{Time: e.Timestamp}, SourceNode: e.SourceNode,
		Metadata: e.Metadata, Mode: e.Mode, Request: e.Request, Prompt: e.Prompt,
	}
	if e.Verbatim {
		out.Infer = new(bool)
	}
	return out
}

// exportAudit writes the records of AUDIT as they are.
func (s *sources) exportAudit(enc *json.Encoder) (count uint64, err error) {
	at, err := s.out.Audit(s.inv.ctx)
	if err != nil || at.Messages == 0 {
		return 0, err
	}
	step, end := s.out.Part("audit", at.Messages)
	defer end()
	reader := tail.New(tail.Config{JS: s.js, Stream: topology.StreamAudit})
	defer reader.Close()
	whole := revisions{}
	for reader.At() < at.Last {
		batch, err := reader.Read(s.inv.ctx, carryWindow, carryPatience)
		if err != nil {
			return count, err
		}
		for _, m := range batch {
			if err := whole.follows(m); err != nil {
				return count, err
			}
			if err := enc.Encode(carriedLine{Stream: topology.StreamAudit, Subject: m.Subject, Header: portable(m.Header), Data: m.Data}); err != nil {
				return count, err
			}
			count++
			step(1)
		}
	}
	return count, nil
}

// revisions are the newest effects of scopes, by subject. AUDIT may begin late because
// it was trimmed, or because a user was erased: only the first leaves a scope that
// does not begin with revision 1.
type revisions map[string]uint64

// follows returns an error where AUDIT lacks an effect before m.
func (r revisions) follows(m tail.Message) error {
	meta, data, err := events.Decode(events.Raw{Subject: m.Subject, Header: m.Header, Body: m.Data, Stream: topology.StreamAudit, Sequence: m.Sequence})
	if err != nil || meta.Kind != events.KindEffectCommitted {
		return err
	}
	var effect struct {
		Revision uint64 `json:"revision"`
	}
	if err := json.Unmarshal(data, &effect); err != nil {
		return fmt.Errorf("read record %d of AUDIT: %w", m.Sequence, err)
	}
	if last := r[m.Subject]; effect.Revision != last+1 {
		return fmt.Errorf("record %d of AUDIT has revision %d of its scope behind %d: older records were trimmed, and an export would lack them",
			m.Sequence, effect.Revision, last)
	}
	r[m.Subject] = effect.Revision
	return nil
}

// portable leaves out the headers that are about the stream of before.
func portable(header nats.Header) nats.Header {
	out := nats.Header{}
	for name, values := range header {
		if !strings.HasPrefix(name, "Nats-Expected-") {
			out[name] = values
		}
	}
	return out
}

// importSuffix names the directory of the streams while they are written.
const importSuffix = ".import"

// ImportAll makes the data directory data of what [Invocation.ExportAll] wrote, and
// builds the memory store from it. There may be no streams and no store yet. If it
// fails or is killed, it leaves none.
func (inv *Invocation) ImportAll(data string, from io.Reader) (out Carried, err error) {
	cfg, _, err := inv.Configuration(map[string]string{"data": data})
	if err != nil {
		return out, err
	}
	dir := cfg.dataPath(natsDir)
	if _, err := os.Stat(dir); cfg.NATS.URL != natsEmbedded || cfg.Memory != backendFile || !os.IsNotExist(err) || !absent(cfg.dataPath(memoryFile)) {
		return out, &userError{fmt.Sprintf("data: %s must be a new directory of a Palimpsest in one process", cfg.Data), nil}
	}
	if err := errors.Join(os.RemoveAll(dir+importSuffix), os.MkdirAll(dir+importSuffix, 0o700)); err != nil {
		return out, err
	}
	if out, err = inv.importStreams(*cfg, dir+importSuffix, from); err == nil {
		err = os.Rename(dir+importSuffix, dir)
	}
	if err != nil {
		return out, errors.Join(err, os.RemoveAll(dir+importSuffix))
	}
	logged := !absent(cfg.dataPath(auditFile))
	built, err := inv.Rebuild(data, RebuildMode{})
	if err == nil && built.Rebuilt != out.Digest {
		err = fmt.Errorf("the memory store has the digest %s, the export %s", built.Rebuilt, out.Digest)
	}
	if err != nil { // the next start would serve it
		err = errors.Join(err, os.RemoveAll(dir), sqlite.Discard(cfg.dataPath(memoryFile)))
		if !logged {
			err = errors.Join(err, sqlite.Discard(cfg.dataPath(auditFile)))
		}
	}
	return out, err
}

func (inv *Invocation) importStreams(cfg Config, dir string, from io.Reader) (out Carried, err error) {
	own, err := broker.StartEmbedded(broker.EmbeddedConfig{Dir: dir, Private: true, Sync: broker.Sync(cfg.NATS.Sync), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, own.Shutdown(context.WithoutCancel(inv.ctx))) }()
	if err := topology.Apply(inv.ctx, own.JetStream(), topology.Declare(cfg.topology())); err != nil {
		return out, err
	}
	shown := terminal.NewProgress(inv.term.Err)
	step, end := shown.Part("import", 0)
	defer func() { end(); shown.Wait() }()
	return carryIn(inv.ctx, own.JetStream(), from, step)
}

// carryIn publishes the lines of an export in their order.
func carryIn(ctx context.Context, js jetstream.JetStream, from io.Reader, step func(n int)) (out Carried, err error) {
	lines := bufio.NewScanner(from)
	lines.Buffer(make([]byte, 64<<10), carryLine)
	var waiting []jetstream.PubAckFuture
	var end *Carried
	for number := 1; lines.Scan(); number++ {
		var l carriedLine
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			return out, fmt.Errorf("line %d: %w", number, err)
		}
		if end != nil {
			return out, fmt.Errorf("line %d: follows the end of the export", number)
		}
		switch l.Stream {
		case topology.StreamEpisodes:
			out.Episodes++
		case topology.StreamAudit:
			out.Audit++
		default:
			if end = l.End; end == nil {
				return out, fmt.Errorf("line %d: is no part of an export of everything", number)
			}
			continue
		}
		future, err := js.PublishMsgAsync(&nats.Msg{Subject: l.Subject, Header: l.Header, Data: l.Data}, jetstream.WithExpectStream(l.Stream))
		if err != nil {
			return out, fmt.Errorf("line %d: %w", number, err)
		}
		step(1)
		if waiting = append(waiting, future); len(waiting) == carryWindow {
			if err := acknowledged(ctx, waiting); err != nil {
				return out, fmt.Errorf("before line %d: %w", number+1, err)
			}
			waiting = waiting[:0]
		}
	}
	if err := errors.Join(lines.Err(), acknowledged(ctx, waiting)); err != nil {
		return out, err
	}
	if end == nil || end.Episodes != out.Episodes || end.Audit != out.Audit {
		return out, errors.New("the export is not whole: its last line is missing or counts other messages")
	}
	return *end, nil
}

// acknowledged waits until the streams have all messages.
func acknowledged(ctx context.Context, waiting []jetstream.PubAckFuture) error {
	for _, future := range waiting {
		select {
		case <-future.Ok():
		case err := <-future.Err():
			return err
		case <-time.After(carryPatience):
			return errors.New("no acknowledgement from the stream")
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
