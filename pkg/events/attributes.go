package events

import (
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/cloudevents/sdk-go/v2/event"
	"github.com/cloudevents/sdk-go/v2/types"
)

// The longest identifiers that an envelope may carry, in bytes of UTF-8.
const (
	MaxID     = 256  // id, correlationid, causationid
	MaxSource = 1024 // source
)

const (
	jsonType       = "application/json"
	structuredType = event.ApplicationCloudEventsJSON
)

// attributes are those of a CloudEvent that mean something here; any other is
// ignored.
type attributes struct {
	specversion, kind, source, id string
	subject, time, contentType    string
	project, incarnation          string
	correlationID, causationID    string
	traceparent, tracestate       string
	// rawSubject is the ce-subject header before percent-decoding: a scope key
	// has escapes of its own, which some publishers do not escape again.
	rawSubject string
}

// set keeps the attribute of that name, which is lower case.
func (a *attributes) set(name, value string) {
	switch name {
	case "specversion":
		a.specversion = value
	case "type":
		a.kind = value
	case "source":
		a.source = value
	case "id":
		a.id = value
	case "subject":
		a.subject = value
	case "time":
		a.time = value
	case "datacontenttype":
		a.contentType = value
	case "project":
		a.project = value
	case "incarnation":
		a.incarnation = value
	case "correlationid":
		a.correlationID = value
	case "causationid":
		a.causationID = value
	case "traceparent":
		a.traceparent = value
	case "tracestate":
		a.tracestate = value
	}
}

// check refuses attributes that are no CloudEvent, or none of Palimpsest's.
func (a *attributes) check(noun string) error {
	if a.specversion != event.CloudEventsVersionV1 {
		return malformed("specversion", "%q is not %s", clip(a.specversion), event.CloudEventsVersionV1)
	}
	for _, f := range [...]struct {
		name, value string
		most        int
	}{
		{"id", a.id, MaxID}, {"source", a.source, MaxSource},
		{"correlationid", a.correlationID, MaxID}, {"causationid", a.causationID, MaxID},
	} {
		if err := checkText(f.name, f.value, f.most); err != nil {
			return err
		}
	}
	if err := a.checkEvent(); err != nil {
		return err
	}
	if a.contentType != "" {
		if m := mediaTypeOf(a.contentType); m != jsonType && !strings.HasSuffix(m, "+json") {
			return invalid("datacontenttype", "%q is not %s", clip(a.contentType), jsonType)
		}
	}
	switch Kind(a.kind).Noun() {
	case "":
		if !conceivable(a.kind) {
			return invalid("type", "%q is no type of ours", clip(a.kind))
		}
		return &FieldError{Field: "type", Code: CodeUnknownKind, Reason: strconv.Quote(clip(a.kind)) + " is unknown"}
	case noun:
		return nil
	}
	if noun == NounIncognito && Kind(a.kind) == KindEpisodeRecorded {
		return nil
	}
	return invalid("type", "%s does not belong on a subject of %s", clip(a.kind), noun)
}

// conceivable reports whether a later version may know a type that this one
// does not: palimpsest.noun.verb.vN. Any other will never be known, and waiting
// for it would only hold up what was said after it.
func conceivable(kind string) bool {
	parts := strings.Split(kind, ".")
	if len(parts) != 4 || parts[0] != "palimpsest" || parts[1] == "" || parts[2] == "" {
		return false
	}
	version, ok := strings.CutPrefix(parts[3], "v")
	n, err := strconv.ParseUint(version, 10, 16)
	return ok && err == nil && n > 0
}

// checkEvent applies the rules of CloudEvents itself.
func (a *attributes) checkEvent() error {
	source := types.ParseURIRef(a.source)
	if source == nil {
		if a.source == "" {
			return invalid("source", "is required")
		}
		return invalid("source", "%q is not a URI reference", clip(a.source))
	}
	ec := event.EventContextV1{ID: a.id, Source: *source, Type: a.kind}
	if a.subject != "" {
		ec.Subject = &a.subject
	}
	refused := ec.Validate()
	for _, name := range [...]string{"id", "source", "type", "subject"} {
		if err := refused[name]; err != nil {
			return invalid(name, "is required: %s", clip(err.Error()))
		}
	}
	return nil
}

// when reads the time attribute.
func (a *attributes) when() (at time.Time, ok bool, err error) {
	if a.time == "" {
		return at, false, nil
	}
	at, err = types.ParseTime(a.time)
	if err != nil || at.Before(earliest) || at.After(latest) {
		return at, false, invalid("time", "%q is not RFC 3339", clip(a.time))
	}
	return at, true, nil
}

// checkText refuses text that is unfit to name something.
func checkText(field, text string, most int) error {
	if len(text) > most {
		return invalid(field, "is %d bytes long, more than %d", len(text), most)
	}
	if !utf8.ValidString(text) {
		return invalid(field, "is not valid UTF-8")
	}
	for _, r := range text {
		if unicode.IsControl(r) {
			return invalid(field, "contains the control character %U", r)
		}
	}
	return nil
}

// validTraceparent reports whether text has the form of a W3C trace context,
// version 00. One that has not is dropped, as that standard asks.
func validTraceparent(text string) bool {
	if len(text) != 55 || text[2] != '-' || text[35] != '-' || text[52] != '-' {
		return false
	}
	for i := range len(text) {
		c := text[i]
		if i != 2 && i != 35 && i != 52 && (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return text[:2] != "ff"
}

// maxTracestate is how much of a vendor's trace state is carried on, which is
// what that standard asks for at least. A longer one is dropped as a whole.
const maxTracestate = 512

// validTracestate reports whether text may stand in a header beside a trace
// context. What vendors mean by it is theirs.
func validTracestate(text string) bool {
	if text == "" || len(text) > maxTracestate {
		return false
	}
	for i := range len(text) {
		if text[i] < ' ' || text[i] > '~' {
			return false
		}
	}
	return true
}
