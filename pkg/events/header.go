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
	h := header{values: make(map[string]string, len(from))}
	for name, values := range from {
		name = strings.ToLower(name)
		for _, v := range values {
			if earlier, ok := h.values[name]; ok && earlier != v && ours(name) && (h.twice == "" || name < h.twice) {
				h.twice = name
			}
			h.values[name] = v
		}
	}
	return h
}

// ours reports whether a header is one that the envelope is read from.
func ours(name string) bool {
	return strings.HasPrefix(name, attributePrefix) || name == "content-type" || name == "nats-msg-id"
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
