package events

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// readBinary reads the attributes of binary mode.
func readBinary(h header) (attributes, error) {
	var a attributes
	if h.twice != "" {
		return a, malformed(strings.TrimPrefix(h.twice, attributePrefix), "is given twice")
	}
	for name, value := range h.values {
		name, ok := strings.CutPrefix(name, attributePrefix)
		if !ok {
			continue
		}
		text := unescape(value)
		if !utf8.ValidString(text) {
			return a, malformed(name, "is not valid UTF-8")
		}
		a.set(name, text)
	}
	a.contentType = h.get("content-type")
	a.rawSubject = h.get("ce-subject")
	return a, nil
}

// Encode writes a message in CloudEvents binary mode. ID and Source of meta are
// required; its Kind and Scope are the payload's. Times are written in UTC. The
// error of a payload or envelope that [Decode] would refuse is a [*FieldError].
func Encode(meta Meta, p Payload) (subject string, head map[string][]string, body []byte, err error) {
	if err := p.Validate(); err != nil {
		return "", nil, nil, err
	}
	owner := p.Owner()
	if p.Kind() == KindMessageBuried { // may name as little as was readable
		owner = owner.Fact()
	} else if err := owner.Validate(); err != nil {
		return "", nil, nil, scopeError(err)
	}
	subject = Subject(p)
	a := attributes{
		specversion: "1.0", kind: string(p.Kind()), source: meta.Source, id: meta.ID,
		subject: owner.Key(), project: owner.Project,
		correlationID: meta.CorrelationID, causationID: meta.CausationID, traceparent: meta.Traceparent, tracestate: meta.Tracestate,
	}
	noun, _, err := ParseSubject(subject)
	if err != nil {
		return "", nil, nil, err
	}
	if err := a.check(noun); err != nil {
		return "", nil, nil, err
	}
	if !meta.Time.IsZero() {
		a.time = meta.Time.UTC().Format(time.RFC3339Nano)
	}
	if h, ok := p.(interface{ incarnation() uint64 }); ok {
		a.incarnation = strconv.FormatUint(h.incarnation(), 10)
	}
	body, err = marshal(p)
	if err != nil {
		return "", nil, nil, err
	}
	return subject, a.header(HashID(owner.Project, owner.Key(), meta.ID)), body, nil
}

// header writes the attributes; messageID is what the broker goes by.
func (a *attributes) header(messageID string) map[string][]string {
	pairs := [...][2]string{
		{"ce-specversion", a.specversion}, {"ce-type", a.kind}, {"ce-source", a.source}, {"ce-id", a.id},
		{"ce-subject", a.subject}, {"ce-time", a.time}, {"ce-project", a.project},
		{"ce-incarnation", a.incarnation}, {"ce-correlationid", a.correlationID},
		{"ce-causationid", a.causationID}, {"ce-traceparent", a.traceparent}, {"ce-tracestate", a.tracestate},
	}
	h := make(map[string][]string, len(pairs)+1) // few have a trace state
	values := make([]string, 0, len(pairs)+1)
	put := func(name, value string) {
		values = append(values, value)
		h[name] = values[len(values)-1 : len(values) : len(values)]
	}
	for _, p := range pairs {
		if p[1] != "" {
			put(p[0], escape(p[1]))
		}
	}
	put("Content-Type", jsonType)
	put(HeaderMessageID, messageID)
	return h
}

func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, malformed("data", "%v", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// escape percent-encodes an attribute for a header, as CloudEvents asks: what
// is outside printable ASCII, the space, the double quote and the percent sign.
func escape(value string) string {
	n := 0
	for i := range len(value) {
		if special(value[i]) {
			n++
		}
	}
	if n == 0 {
		return value
	}
	const hex = "0123456789ABCDEF"
	out := make([]byte, 0, len(value)+2*n)
	for i := range len(value) {
		if c := value[i]; special(c) {
			out = append(out, '%', hex[c>>4], hex[c&15])
		} else {
			out = append(out, c)
		}
	}
	return string(out)
}

func special(c byte) bool { return c <= ' ' || c > '~' || c == '"' || c == '%' }

// unescape reverses escape, after taking off the quotes that CloudEvents allows
// around a value. A percent sign that begins no escape stands for itself: not
// every publisher knows that it must be escaped.
func unescape(value string) string {
	if len(value) >= 2 && value[0] == '"' && value[len(value)-1] == '"' {
		value = unquote(value[1 : len(value)-1])
	}
	if !strings.Contains(value, "%") {
		return value
	}
	out := make([]byte, 0, len(value))
	for i := 0; i < len(value); i++ {
		if value[i] == '%' && i+2 < len(value) {
			if c, err := strconv.ParseUint(value[i+1:i+3], 16, 8); err == nil {
				out = append(out, byte(c))
				i += 2
				continue
			}
		}
		out = append(out, value[i])
	}
	return string(out)
}

// unquote takes backslashes off the inside of a quoted header value.
func unquote(inner string) string {
	if !strings.Contains(inner, `\`) {
		return inner
	}
	out := make([]byte, 0, len(inner))
	for i := 0; i < len(inner); i++ {
		if inner[i] == '\\' && i+1 < len(inner) {
			i++
		}
		out = append(out, inner[i])
	}
	return string(out)
}
