package events

import (
	"strings"
)

// HeaderMessageID is the header by which the broker recognises a repeated
// publish within a stream's duplicate window.
const HeaderMessageID = "Nats-Msg-Id"

const attributePrefix = "ce-"

// header gives the values of a message's headers by lower-case name. Clients
// differ in how they spell them.
type header struct {
	values map[string]string
	// twice is a name that has several values, empty where none has.
	twice string
}

func readHeader(from map[string][]string) header {
	var h header
	for name, values := range from {
		if !ours(name) {
			continue
		}
		name = strings.ToLower(name)
		for _, v := range values {
			if h.values == nil {
				h.values = make(map[string]string, len(from))
			}
			if earlier, ok := h.values[name]; ok && earlier != v && !traces(name) && (h.twice == "" || name < h.twice) {
				h.twice = name
			}
			h.values[name] = v
		}
	}
	return h
}

// Where publishers that know nothing of CloudEvents name a trace.
const (
	traceHeader = "traceparent"
	stateHeader = "tracestate"
)

// ours reports whether a header is one that the envelope is read from, however
// it is spelled. Brokers and clients add others.
func ours(name string) bool {
	if len(name) >= len(attributePrefix) && strings.EqualFold(name[:len(attributePrefix)], attributePrefix) {
		return true
	}
	return strings.EqualFold(name, "content-type") || strings.EqualFold(name, HeaderMessageID) || traces(name)
}

func traces(name string) bool {
	return strings.EqualFold(name, traceHeader) || strings.EqualFold(name, stateHeader)
}

func (h header) get(name string) string { return h.values[name] }

func (h header) mediaType() string { return mediaTypeOf(h.values["content-type"]) }

func (h header) binary() bool {
	for name := range h.values {
		if strings.HasPrefix(name, attributePrefix) {
			return true
		}
	}
	return false
}
