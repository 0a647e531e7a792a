package llm

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Reading is what could be read of a list.
type Reading struct {
	Items []json.RawMessage
	// Partial: the list breaks off, or goes on with something that is no JSON.
	Partial bool
}

// maxStarts bounds at how many places of a reply JSON is looked for.
const maxStarts = 64

// Items reads the list of objects that a reply holds under key: as it stands, in a
// code fence, within prose, as a bare list, and up to where it breaks off. An error
// wraps [ErrMalformed].
func Items(text, key string) (Reading, error) {
	if strings.TrimSpace(text) == "" {
		return Reading{}, fmt.Errorf("%w: it is empty", ErrMalformed)
	}
	starts := 0
	for i := range len(text) {
		if text[i] != '{' && text[i] != '[' {
			continue
		}
		if starts++; starts > maxStarts {
			break
		}
		if r, ok := itemsAt(text[i:], key); ok {
			return r, nil
		}
	}
	return Reading{}, fmt.Errorf("%w: it holds no list %q", ErrMalformed, key)
}

// Decode is [Items] whose objects have a type. It leaves out an object that has not.
func Decode[T any](text, key string) ([]T, error) {
	r, err := Items(text, key)
	if err != nil {
		return nil, err
	}
	out := make([]T, 0, len(r.Items))
	for _, item := range r.Items {
		var v T
		if json.Unmarshal(item, &v) == nil {
			out = append(out, v)
		}
	}
	return out, nil
}

// itemsAt reads a list, or an object with one under key, at the start of text.
func itemsAt(text, key string) (Reading, bool) {
	dec := json.NewDecoder(strings.NewReader(text))
	open, err := dec.Token()
	if err != nil {
		return Reading{}, false
	}
	if open == json.Delim('[') {
		r := list(dec)
		// Prose has brackets too: "[1]", "[...]". An empty list counts where it is
		// the whole reply.
		return r, len(r.Items) > 0 || !r.Partial && onlyFence(text[dec.InputOffset():])
	}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return Reading{}, false
		}
		if name != key {
			var skipped json.RawMessage
			if dec.Decode(&skipped) != nil {
				return Reading{}, false
			}
			continue
		}
		if open, err := dec.Token(); err != nil || open != json.Delim('[') {
			return Reading{}, false
		}
		return list(dec), true
	}
	return Reading{}, false
}

// list reads the rest of a list whose bracket was read. It leaves out elements that
// are no objects.
func list(dec *json.Decoder) Reading {
	var r Reading
	for dec.More() {
		var item json.RawMessage
		if err := dec.Decode(&item); err != nil {
			r.Partial = true
			return r
		}
		if item[0] == '{' {
			r.Items = append(r.Items, item)
		}
	}
	_, err := dec.Token() // the closing bracket
	r.Partial = err != nil
	return r
}

func onlyFence(rest string) bool { return strings.Trim(rest, "` \t\r\n") == "" }
