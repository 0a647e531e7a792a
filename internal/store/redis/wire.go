package redis

import (
	"errors"
	"strconv"
	"strings"
)

var errWire = errors.New("redis: the reply is not of protocol 3")

// wire reads a reply of protocol 3 from its front. What it gives are parts of the
// one string. After an error there is nothing left to read.
type wire struct {
	rest string
	err  error
}

// fail drops what is left.
func (w *wire) fail() { w.rest, w.err = "", errWire }

// head takes the first line of the next value: its type, and what stands behind it.
// Attributes, which may precede any value, are passed over.
func (w *wire) head() (kind byte, rest string) {
	line, after, ok := strings.Cut(w.rest, "\r\n")
	if !ok || line == "" {
		w.fail()
		return 0, ""
	}
	w.rest = after
	if line[0] != '|' {
		return line[0], line[1:]
	}
	for range w.count(line[1:], 2) {
		w.skip()
	}
	return w.head()
}

// count reads how many values follow, each of the given width. There cannot be more
// than bytes, which bounds what a torn reply makes us do.
func (w *wire) count(digits string, width int) int {
	n, err := strconv.Atoi(digits)
	if err != nil || n < 0 || n > len(w.rest)/width {
		w.fail()
		return 0
	}
	return n * width
}

// word is a value that holds no others; none is empty.
func (w *wire) word() string {
	kind, rest := w.head()
	switch kind {
	case '+', ':', ',', '#', '(':
		return rest
	case '_':
		return ""
	case '$', '=':
		n := w.count(rest, 1)
		if n+2 > len(w.rest) || w.rest[n:n+2] != "\r\n" {
			w.fail()
			return ""
		}
		text := w.rest[:n]
		w.rest = w.rest[n+2:]
		return text
	}
	w.fail()
	return ""
}

// list takes a list, each item of which the function must take.
func (w *wire) list(item func()) {
	kind, rest := w.head()
	if kind != '*' && kind != '~' {
		w.fail()
		return
	}
	for range w.count(rest, 1) {
		if w.err == nil {
			item()
		}
	}
}

// table takes a map, each value of which the function must take.
func (w *wire) table(value func(key string)) {
	kind, rest := w.head()
	if kind != '%' {
		w.fail()
		return
	}
	for range w.count(rest, 2) / 2 {
		if key := w.word(); w.err == nil {
			value(key)
		}
	}
}

// skip takes the next value, whatever it is.
func (w *wire) skip() {
	if w.err != nil || w.rest == "" {
		w.fail()
		return
	}
	switch w.rest[0] {
	case '*', '~':
		w.list(w.skip)
	case '%':
		w.table(func(string) { w.skip() })
	default:
		w.word()
	}
}
