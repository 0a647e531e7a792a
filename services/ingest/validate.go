package ingest

import (
	"encoding/json"
	"time"

	// A time zone must be valid or not whatever the machine has installed.
	_ "time/tzdata"

	"palimpsest/internal/memory"
	"palimpsest/internal/pipeline"
	"palimpsest/pkg/events"
)

// maxSourceNode bounds the name of the node that an episode came through.
const maxSourceNode = 256

// validate turns what was published into what is stored, or says which field
// is refused. The payload's own Validate has passed.
func (c Config) validate(in events.Event[events.EpisodeRecorded]) (memory.Episode, error) {
	d := in.Data
	if d.Mode == events.ModeIncognito {
		return memory.Episode{}, pipeline.Rejectf(events.CodeInvalidField, "mode",
			"a stream would store an incognito episode: send it to POST /v1/episodes; this one was removed from the stream")
	}
	if err := c.checkSizes(d); err != nil {
		return memory.Episode{}, err
	}
	arrived := arrival(in.Meta)
	at, clamped, err := c.happened(d.Timestamp.Time, arrived, d.Metadata)
	if err != nil {
		return memory.Episode{}, err
	}
	return memory.Episode{
		ID:            in.ID,
		Source:        in.Source,
		Scope:         in.Scope,
		Role:          d.Role,
		Content:       d.Content,
		Timestamp:     at,
		Clamped:       clamped,
		ArrivedAt:     arrived,
		SourceNode:    d.SourceNode,
		Metadata:      d.Metadata,
		Mode:          modeOf(d.Mode),
		Seq:           in.Sequence,
		CorrelationID: in.CorrelationID,
		Traceparent:   in.Traceparent,
		Request:       d.Request || d.Prompt != "",
		Prompt:        d.Prompt,
		Verbatim:      d.Infer != nil && !*d.Infer,
	}, nil
}

func modeOf(m events.Mode) events.Mode {
	if m == "" {
		return events.ModePersistent
	}
	return m
}

func (c Config) checkSizes(d events.EpisodeRecorded) error {
	for _, f := range []struct {
		name       string
		size, most int
	}{
		{"content", len(d.Content), c.MaxContent},
		{"prompt", len(d.Prompt), c.MaxContent},
		{"source_node", len(d.SourceNode), maxSourceNode},
	} {
		if f.size > f.most {
			return tooLarge(f.name, f.size, f.most)
		}
	}
	if len(d.Metadata) == 0 {
		return nil
	}
	text, err := json.Marshal(d.Metadata)
	if err != nil {
		return pipeline.Rejectf(events.CodeInvalidField, "metadata", "metadata: %w", err)
	}
	if len(text) > c.MaxMetadata {
		return tooLarge("metadata", len(text), c.MaxMetadata)
	}
	return nil
}

func tooLarge(field string, size, most int) error {
	return pipeline.Rejectf(events.CodeTooLarge, field, "%s: is %d bytes, more than %d", field, size, most)
}

// arrival is when the broker took the message. A message from outside a stream
// has no other time than its own.
func arrival(m events.Meta) time.Time {
	if m.Arrived.IsZero() {
		return m.Time
	}
	return m.Arrived
}

// happened resolves an episode's timestamp: its own, or its arrival where it has
// none or one that lies more than MaxAhead after its arrival; in the zone that
// metadata.tz names, else with the offset it came with. A limit in place of the
// arrival would make of a clock that runs ahead a fact that outranks what is said
// next.
func (c Config) happened(claimed, arrived time.Time, metadata map[string]any) (at time.Time, clamped bool, err error) {
	at = claimed
	if at.IsZero() {
		at = arrived
	}
	if at.After(arrived.Add(c.MaxAhead)) {
		at, clamped = arrived.In(at.Location()), true
	}
	if tz, ok := metadata[events.MetaTimezone].(string); ok {
		loc, err := parseZone(tz)
		if err != nil {
			return time.Time{}, false, pipeline.Reject(events.CodeInvalidField, "metadata."+events.MetaTimezone, err)
		}
		at = at.In(loc)
	}
	return at, clamped, nil
}
