package redis

import (
	"bytes"
	"errors"
	"strconv"
)

var errWire = errors.New("the reply is not of protocol 3")

var lineEnd = []byte("\r\n")

// wire reads a reply of protocol 3 from its front. The values that it returns are
// slices of the reply. After an error nothing is left to read.
type wire struct {
	rest []byte
	err  error
}

// fail drops what is left.
func (w *wire) fail() { w.rest, w.err = nil, errWire }

// head reads the first line of the next value: its type and the rest of the line. It
// skips attributes, which may precede any value.
func (w *wire) head() (kind byte, rest []byte) {
	for {
		line, after, ok := bytes.Cut(w.rest, lineEnd)
		if !ok || len(line) == 0 {
			w.fail()
			return 0, nil
		}
		w.rest = after
		if line[0] != '|' {
			return line[0], line[1:]
		}
		w.skipAll(w.count(line[1:], 2))
	}
}

// count reads how many values follow, each of the given width. There cannot be more
// than bytes, which bounds what a torn reply makes us do.
func (w *wire) count(digits []byte, width int) int {
	n, err := strconv.Atoi(string(digits))
	if err != nil || n < 0 || n > len(w.rest)/width {
		w.fail()
		return 0
	}
	return n * width
}

// word is a value that holds no others; none is empty.
func (w *wire) word() []byte { return w.scalar(w.head()) }

func (w *wire) scalar(kind byte, rest []byte) []byte {
	switch kind {
	case '+', ':', ',', '#', '(', '-':
		return rest
	case '_':
		return nil
	case '$', '=', '!':
		if text, after, ok := cutAt(w.rest, w.count(rest, 1)); ok {
			w.rest = after
			return text
		}
	}
	w.fail()
	return nil
}

// cutAt takes n bytes and the end of a line.
func cutAt(b []byte, n int) (text, after []byte, ok bool) {
	if len(b) < n {
		return nil, nil, false
	}
	after, ok = bytes.CutPrefix(b[n:], lineEnd)
	return b[:n], after, ok
}

// list takes a list, each item of which the function must take; begin, if any, is
// told of how many. None is empty.
func (w *wire) list(begin func(n int), item func()) {
	switch kind, rest := w.head(); kind {
	case '*', '~':
		n := w.count(rest, 1)
		if begin != nil {
			begin(n)
		}
		for range n {
			if w.err == nil {
				item()
			}
		}
	case '_':
	default:
		w.fail()
	}
}

// table takes a map, each value of which the function must take. None is empty.
func (w *wire) table(value func(key []byte)) {
	switch kind, rest := w.head(); kind {
	case '%':
		for range w.count(rest, 2) / 2 {
			if key := w.word(); w.err == nil {
				value(key)
			}
		}
	case '_':
	default:
		w.fail()
	}
}

// skip reads the next value of any type and drops it.
func (w *wire) skip() {
	switch kind, rest := w.head(); kind {
	case '*', '~':
		w.skipAll(w.count(rest, 1))
	case '%':
		w.skipAll(w.count(rest, 2))
	default:
		w.scalar(kind, rest)
	}
}

func (w *wire) skipAll(n int) {
	for range n {
		if w.err == nil {
			w.skip()
		}
	}
}
