package events

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
)

// text passes over a string and returns what it says, which shares the data's
// memory where it can.
func (w *walker) text() ([]byte, error) {
	start := w.i
	if err := w.take('"'); err != nil {
		return nil, err
	}
	escaped := false
	for ; w.next() != '"'; w.i++ {
		if w.i >= len(w.data) {
			return nil, errSyntax
		}
		if w.data[w.i] != '\\' {
			continue
		}
		escaped = true
		w.i++
		if w.next() == 'u' && !w.surrogate() {
			return nil, w.refuse(CodeMalformed, "holds an unpaired surrogate")
		}
	}
	w.i++
	if !escaped {
		return w.data[start+1 : w.i-1], nil
	}
	var text string
	if err := json.Unmarshal(w.data[start:w.i], &text); err != nil {
		return nil, w.refuse(CodeMalformed, "is not a string")
	}
	return []byte(text), nil
}

// surrogate passes over the escape whose "u" it stands on, and over its second
// half where it needs one; it is false where that is missing. Without the test
// encoding/json would put U+FFFD there, and two texts could become one.
func (w *walker) surrogate() bool {
	r := w.hex(w.i + 1)
	w.i += 4
	if !utf16.IsSurrogate(r) {
		return true
	}
	if w.i+6 >= len(w.data) || w.data[w.i+1] != '\\' || w.data[w.i+2] != 'u' {
		return false
	}
	low := w.hex(w.i + 3)
	w.i += 6
	return utf16.DecodeRune(r, low) != '\uFFFD'
}

func (w *walker) hex(at int) rune {
	if at+4 > len(w.data) {
		return 0
	}
	n, err := strconv.ParseUint(string(w.data[at:at+4]), 16, 16)
	if err != nil {
		return 0
	}
	return rune(n)
}

// number passes over a number and refuses one that its type cannot hold.
func (w *walker) number(s *shape) error {
	start := w.i
	for w.i < len(w.data) && strings.IndexByte("+-.0123456789eE", w.data[w.i]) >= 0 {
		w.i++
	}
	if w.i == start {
		return errSyntax
	}
	var err error
	switch s.form {
	case formInt:
		_, err = strconv.ParseInt(string(w.data[start:w.i]), 10, s.bits)
	case formUint:
		_, err = strconv.ParseUint(string(w.data[start:w.i]), 10, s.bits)
	case formFloat:
		_, err = strconv.ParseFloat(string(w.data[start:w.i]), s.bits)
	case formAny:
		_, err = strconv.ParseFloat(string(w.data[start:w.i]), 64)
	}
	if err == nil {
		return nil
	}
	literal := clip(string(w.data[start:w.i]))
	switch s.form {
	case formInt:
		return w.refuse(CodeInvalidField, fmt.Sprintf("%s is no whole number of %d bits", literal, s.bits))
	case formUint:
		return w.refuse(CodeInvalidField, fmt.Sprintf("%s is no whole number from 0 of %d bits", literal, s.bits))
	}
	return w.refuse(CodeInvalidField, literal+" is out of range")
}

func (w *walker) refuse(code, reason string) error {
	return &FieldError{Field: w.where(), Code: code, Reason: reason}
}

// where is the path as text: "candidates[3].confidence". A name that could be
// mistaken for something else is quoted: metadata["a.b"].
func (w *walker) where() string {
	path := ""
	for _, s := range w.path {
		switch {
		case s.key == nil:
			path += "[" + strconv.Itoa(s.index) + "]"
		case plainName(s.key):
			path = join(path, string(s.key))
		default:
			path += "[" + strconv.Quote(clip(string(s.key))) + "]"
		}
	}
	if path == "" {
		return "data"
	}
	return path
}

func plainName(key []byte) bool {
	for _, c := range key {
		if c <= ' ' || c >= 0x7f || strings.IndexByte(`.[]"\`, c) >= 0 {
			return false
		}
	}
	return 0 < len(key) && len(key) <= 64
}

// join appends a relative path to a path.
func join(path, rest string) string {
	if path == "" || path == "data" || rest == "" || rest[0] == '[' {
		if path == "data" && rest != "" {
			return rest
		}
		return path + rest
	}
	return path + "." + rest
}
