package events

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strconv"
	"unicode/utf8"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// How deep arrays and objects may nest. What publishers send ends up some
// levels deeper in effects, which must stay readable for ever: hence the
// difference.
const (
	MaxDepth    = 32
	maxOwnDepth = 64
)

// Unmarshal reads JSON more strictly than encoding/json does: the text is valid
// UTF-8 without unpaired surrogates, nests at most [MaxDepth] deep, names no
// member twice and has nothing behind it. Members are known by their exact
// names; unknown ones are ignored. The error is a [*FieldError] that names the
// member which does not fit v as a JSON path. A member of v that the text omits
// keeps its value.
func Unmarshal(data []byte, v any) error { return unmarshal(data, v, MaxDepth) }

func unmarshal(data []byte, v any, depth int) error {
	into := reflect.ValueOf(v).Elem()
	before := reflect.Zero(into.Type())
	if !into.IsZero() { // a copy costs an allocation
		before = reflect.New(into.Type()).Elem()
		before.Set(into)
	}
	if readAtOnce(data, v, depth) {
		return nil
	}
	into.Set(before) // undoes the members that were read before the error
	return readOrExplain(data, v, depth)
}

// readAtOnce reads what fits in one pass. It accepts nothing that [readOrExplain]
// refuses.
func readAtOnce(data []byte, v any, depth int) bool {
	return shallow(data, depth) && jsonv2.Unmarshal(data, v, unions) == nil
}

// readOrExplain reads in several passes, and names the member that does not fit.
func readOrExplain(data []byte, v any, depth int) error {
	if len(bytes.TrimSpace(data)) == 0 {
		return malformed("data", "is empty")
	}
	if !utf8.Valid(data) {
		return malformed("data", "is not valid UTF-8")
	}
	root := shapeOf(reflect.TypeOf(v).Elem())
	w := newWalker(data, depth)
	defer w.free()
	err := w.value(root)
	if err == nil {
		data = w.masked()
		if err = json.Unmarshal(data, v); err == nil {
			return nil
		}
	} else if json.Valid(data) {
		return err
	}
	// Only what is refused pays for a look of its own at the syntax, which comes
	// before all else that may be wrong.
	if !json.Valid(data) {
		return malformed("data", "is not JSON: %s", syntaxOf(data))
	}
	// Walk again, now reading each leaf by itself: the first that fails is the
	// one to name.
	w.restart(data, depth)
	w.locate = true
	if located := w.value(root); located != nil {
		return located
	}
	var refused *FieldError
	if errors.As(err, &refused) {
		return refused
	}
	return malformed("data", "%s", clip(err.Error()))
}

// unions reads the types that have an UnmarshalJSON of their own from the text as it
// stands, where encoding/json would read that text once more.
var unions = jsonv2.WithUnmarshalers(jsonv2.JoinUnmarshalers(
	jsonv2.UnmarshalFromFunc(func(from *jsontext.Decoder, into *Applied) error { return readUnion(from, into.from) }),
	jsonv2.UnmarshalFromFunc(func(from *jsontext.Decoder, into *Deltas) error { return readUnion(from, into.from) }),
))

func readUnion[T any](from *jsontext.Decoder, into func(T) error) error {
	var wire T
	if err := jsonv2.UnmarshalDecode(from, &wire); err != nil {
		return err
	}
	return into(wire)
}

// shallow reports whether the text nests at most depth deep. It may say no of text
// that is no JSON.
func shallow(data []byte, depth int) bool {
	if bytes.Count(data, []byte{'{'})+bytes.Count(data, []byte{'['}) <= depth {
		return true
	}
	at := 0
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '"':
			i = endOfText(data, i+1)
		case '{', '[':
			if at++; at > depth {
				return false
			}
		case '}', ']':
			at--
		}
	}
	return true
}

// endOfText is where the string ends whose first byte stands at i.
func endOfText(data []byte, i int) int {
	for i < len(data) {
		n := bytes.IndexByte(data[i:], '"')
		if n < 0 {
			break
		}
		escaped := false
		for at := i + n; at > i && data[at-1] == '\\'; at-- {
			escaped = !escaped
		}
		if i += n; !escaped {
			return i
		}
		i++
	}
	return len(data)
}

func syntaxOf(data []byte) string {
	var any json.RawMessage
	err := json.Unmarshal(data, &any)
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return clip(syntax.Error()) + " at byte " + strconv.FormatInt(syntax.Offset, 10)
	}
	return "unreadable"
}

// errSyntax: the text is not JSON. The walker finds only errors that would lead it
// out of the text. The decoder of the values finds the others.
var errSyntax = errors.New("is not JSON")
