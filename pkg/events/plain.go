package events

import (
	"bytes"
	"encoding/json"
	"strconv"
)

// PlainSource is the source of episodes published as plain JSON. It names no
// scope, because an episode's identity is (project, scope, source, id) anyway.
const PlainSource = "nats:plain"

// readPlain makes an event of a body without an envelope. What the data lacks
// is left to be refused, by name, when it is decoded.
func readPlain(raw Raw, h header) (attributes, []byte) {
	id := h.get("nats-msg-id")
	if id == "" {
		id = HashID(raw.StreamID, strconv.FormatUint(raw.Sequence, 10))
	}
	return attributes{
		specversion: "1.0", kind: string(KindEpisodeRecorded), source: PlainSource, id: id,
	}, withRole(raw.Body)
}

// withRole gives a plain episode that names no role the user's. Anything but a
// JSON object is returned as it is.
func withRole(body []byte) []byte {
	object := bytes.TrimLeft(body, " \t\r\n")
	if len(object) == 0 || object[0] != '{' || names(object, "role") || !json.Valid(object) {
		return body
	}
	rest := bytes.TrimLeft(object[1:], " \t\r\n")
	role := `{"role":"user"`
	if rest[0] != '}' {
		role += ","
	}
	return append([]byte(role), rest...)
}

// names reports whether an object has a member of exactly that name. For an object
// that will be refused it may report true.
func names(object []byte, name string) bool {
	w := newWalker(object, MaxDepth)
	defer w.free()
	for w.i++; ; w.i++ { // behind "{" or ","
		w.space()
		if w.next() == '}' {
			return false
		}
		key, err := w.text()
		if err != nil || string(key) == name {
			return true
		}
		w.space()
		if w.take(':') != nil || w.value(anything) != nil {
			return true
		}
		w.space()
		if w.next() != ',' {
			return false
		}
	}
}
