package events

import (
	"fmt"
	"mime"
	"strings"
	"time"

	"palimpsest/pkg/scope"
)

// Raw is a message as the broker delivers it.
type Raw struct {
	Subject string
	Header  map[string][]string
	Body    []byte
	// Stream is the stream's name, empty outside a stream. StreamID is its
	// identity, e.g. name and time of creation: sequences of a stream that was
	// deleted and made again must not name the same episodes.
	Stream   string
	StreamID string
	Sequence uint64
	// Time is the broker's.
	Time time.Time
	// Delivery counts from 1.
	Delivery int
}

// Decode reads the envelope of a message, in any of three forms, and returns its
// attributes and the data for [DecodeData]:
//
//   - CloudEvents binary mode: ce-* headers, the body is the data;
//   - CloudEvents structured mode: Content-Type application/cloudevents+json;
//   - on EPISODES, a plain JSON body without CloudEvents headers. Its id is
//     Nats-Msg-Id, else hash(stream identity, sequence); its source is
//     [PlainSource]; its role is "user" where it names none.
//
// The scope comes from the subject alone; a ce-subject or project that differs is
// refused. Errors are a [*FieldError]; one that is [ErrUnknownKind] may pass with
// time. With an error, Meta holds the attributes that could be read.
func Decode(raw Raw) (Meta, []byte, error) {
	meta := Meta{Time: raw.Time, Arrived: raw.Time, Sequence: raw.Sequence, Delivery: raw.Delivery}
	noun, s, err := ParseSubject(raw.Subject)
	meta.Scope = s
	if err != nil {
		return meta, nil, err
	}
	h := readHeader(raw.Header)
	var a attributes
	data := raw.Body
	switch mediaType := h.mediaType(); {
	case mediaType == structuredType:
		a, data, err = readStructured(raw.Body)
	case strings.HasPrefix(mediaType, "application/cloudevents"):
		err = malformed("content-type", "%q is not supported: send %s", clip(mediaType), structuredType)
	case h.binary():
		a, err = readBinary(h)
	case noun == NounEpisodes:
		a, data = readPlain(raw, h)
	default:
		err = malformed("specversion", "is required: the message has no CloudEvents headers")
	}
	if a.traceparent == "" {
		a.traceparent, a.tracestate = h.get(traceHeader), h.get(stateHeader)
	}
	a.fill(&meta)
	if err == nil {
		err = a.check(noun)
	}
	if err == nil {
		err = a.settle(noun, &meta)
	}
	if err != nil {
		return meta, nil, err
	}
	return meta, data, nil
}

// fill copies what the attributes say; nothing of it is checked yet.
func (a *attributes) fill(meta *Meta) {
	meta.ID, meta.Source, meta.Kind = a.id, a.source, Kind(a.kind)
	meta.CorrelationID, meta.CausationID = a.correlationID, a.causationID
	if validTraceparent(a.traceparent) {
		meta.Traceparent = a.traceparent
		if validTracestate(a.tracestate) {
			meta.Tracestate = a.tracestate
		}
	}
}

// settle brings the attributes and the subject together.
func (a *attributes) settle(noun string, meta *Meta) error {
	if at, ok, err := a.when(); err != nil {
		return err
	} else if ok {
		meta.Time = at
	}
	if noun == NounOutcomes {
		s, err := scope.ParseKey(a.project, a.subject)
		if err != nil {
			return scopeError(err)
		}
		meta.Scope = s
	}
	if noun == NounEpisodes || noun == NounIncognito {
		if meta.CorrelationID == "" {
			meta.CorrelationID = meta.ID
		}
	}
	return a.agree(meta.Scope)
}

// agree refuses an envelope that names another scope than the subject does. The
// subject is what permissions, partitions and erasure go by.
func (a *attributes) agree(s scope.Scope) error {
	if a.subject != "" {
		if key := s.Key(); a.subject != key && a.rawSubject != key {
			return invalid("subject", "%q is not the scope %q that the message was published to", clip(a.subject), clip(key))
		}
	}
	if a.project != "" && a.project != s.Project {
		return invalid("project", "%q is not the project %q that the message was published to", clip(a.project), clip(s.Project))
	}
	return nil
}

// DecodeData reads the data of a message of P's kind: strict JSON whose unknown
// members are ignored. It sets a scope that does not travel in the data from
// meta, refuses one that does and differs, and validates. The error is a
// [*FieldError] that names the field as a JSON path.
func DecodeData[P Payload](meta Meta, data []byte) (Event[P], error) {
	e := Event[P]{Meta: meta}
	if kind := e.Data.Kind(); meta.Kind != kind {
		return e, &FieldError{Field: "type", Code: CodeUnknownKind, Reason: "is " + string(meta.Kind) + ", not " + string(kind)}
	}
	if err := unmarshal(data, &e.Data, depthOf(meta.Kind)); err != nil {
		return e, err
	}
	if p, ok := any(&e.Data).(interface{ setScope(scope.Scope) }); ok {
		p.setScope(meta.Scope)
	}
	if err := e.Data.Validate(); err != nil {
		return e, err
	}
	if e.Data.Owner() != meta.Scope {
		return e, invalid("scope", "is not the scope that the message was published to")
	}
	return e, nil
}

// depthOf is how deep the data of a kind may nest.
func depthOf(k Kind) int {
	switch k {
	case KindEpisodeRecorded, KindSessionEnded, KindCommandRequested:
		return MaxDepth
	}
	return maxOwnDepth
}

func (e *EpisodeRecorded) setScope(s scope.Scope) { e.Scope = s }
func (s *SessionEnded) setScope(of scope.Scope)   { s.Scope = of }
func (m *MessageBuried) setScope(s scope.Scope)   { m.Scope = s }

func mediaTypeOf(contentType string) string {
	if contentType == "" {
		return ""
	}
	if contentType == jsonType { // spares the parser on the common path
		return jsonType
	}
	mediaType, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		mediaType, _, _ = strings.Cut(contentType, ";")
		mediaType = strings.ToLower(strings.TrimSpace(mediaType))
	}
	return mediaType
}

func malformed(field, format string, args ...any) error {
	return &FieldError{Field: field, Code: CodeMalformed, Reason: fmt.Sprintf(format, args...)}
}
