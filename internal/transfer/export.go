// Package transfer writes all messages of the streams EPISODES and AUDIT to a file,
// and publishes those of such a file to empty streams.
package transfer

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"palimpsest/internal/memory"
	"palimpsest/internal/recovery"
	"palimpsest/internal/tail"
	"palimpsest/internal/topology"
	"palimpsest/pkg/events"
)

// Counts are the messages of an export or an import of everything.
type Counts struct {
	Episodes uint64 `json:"episodes"`
	Audit    uint64 `json:"audit"`
	// Digest is that of the canonical export of all projects.
	Digest string `json:"digest"`
	// Sum is the SHA-256, in hex, of the lines before the last. It covers what the
	// digest does not: episodes, and the reasons of decisions.
	Sum string `json:"sum"`
	// Erased counts the messages that an import left out.
	Erased uint64 `json:"erased,omitempty"`
}

// line is a line of an export: one message of a stream, or, last, the
// counts, which tell a whole export from a part of one.
type line struct {
	Stream  string          `json:"stream,omitempty"`
	Subject string          `json:"subject,omitempty"`
	Header  nats.Header     `json:"header,omitempty"`
	Data    json.RawMessage `json:"data,omitempty"`
	End     *Counts         `json:"end,omitempty"`
}

const (
	// window is how many messages of an import may wait for their
	// acknowledgement.
	window = 256
	// patience bounds the wait for the next message of a stream, and for an
	// acknowledgement.
	patience = 30 * time.Second
	// longest bounds a line, in bytes.
	longest = 64 << 20
)

// Source is the Palimpsest that is exported.
type Source struct {
	// Sources are its streams and its store. Their log is not read.
	recovery.Sources
	// JS reads AUDIT.
	JS jetstream.JetStream
	// Digest is that of the canonical export of all projects.
	Digest func(ctx context.Context) (string, error)
}

// Export writes all episodes and all records of AUDIT. The Palimpsest must be idle or
// stopped: the digest is that of its store at the end. An AUDIT that was trimmed is
// an error.
func (s *Source) Export(ctx context.Context, to io.Writer) (out Counts, err error) {
	sum := sha256.New()
	enc := json.NewEncoder(io.MultiWriter(to, sum))
	enc.SetEscapeHTML(false)
	if out.Episodes, err = s.exportEpisodes(ctx, enc); err != nil {
		return out, err
	}
	if out.Audit, err = s.exportAudit(ctx, enc); err != nil {
		return out, err
	}
	if out.Digest, err = s.Digest(ctx); err != nil {
		return out, err
	}
	out.Sum = hex.EncodeToString(sum.Sum(nil))
	return out, enc.Encode(line{End: &out})
}

// exportEpisodes writes the episodes as they were stored, with their ids and times,
// which some messages of the stream take from the stream itself.
func (s *Source) exportEpisodes(ctx context.Context, enc *json.Encoder) (count uint64, err error) {
	at, err := s.Episodes.Extent(ctx)
	if err != nil {
		return 0, err
	}
	step, end := s.Part("episodes", at.Messages)
	defer end()
	return count, errors.Join(err, s.Said(ctx, func(e memory.Episode) error {
		count++
		step(1)
		subject, header, body, err := events.Encode(events.Meta{
			ID: e.ID, Source: e.Source, CorrelationID: e.CorrelationID, Time: e.ArrivedAt,
		}, recordedOf(e))
		if err != nil {
			return err
		}
		return enc.Encode(line{Stream: topology.StreamEpisodes, Subject: subject, Header: nats.Header(header), Data: body})
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
func (s *Source) exportAudit(ctx context.Context, enc *json.Encoder) (count uint64, err error) {
	at, err := s.Effects.Extent(ctx)
	if err != nil || at.Messages == 0 {
		return 0, err
	}
	step, end := s.Part("audit", at.Messages)
	defer end()
	reader := tail.New(tail.Config{JS: s.JS, Stream: topology.StreamAudit})
	defer reader.Close()
	whole := revisions{}
	for reader.At() < at.Last {
		batch, err := reader.Read(ctx, window, patience)
		if err != nil {
			return count, err
		}
		for _, m := range batch {
			if err := whole.follows(m); err != nil {
				return count, err
			}
			if err := enc.Encode(line{Stream: topology.StreamAudit, Subject: m.Subject, Header: portable(m.Header), Data: m.Data}); err != nil {
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
		return fmt.Errorf("record %d of AUDIT has revision %d of its scope after %d: older records were trimmed, and an export would lack them",
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
