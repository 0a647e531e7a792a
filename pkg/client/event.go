package client

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
)

// sent is a server-sent event.
type sent struct {
	kind string // empty for a message
	data []byte // valid until the next
}

// readEvents parses a stream of server-sent events as the HTML standard defines it,
// except for lines that end in a bare CR. It ignores ids and retry times. The end of
// the stream is [ErrEnded]; an incomplete last event is dropped.
func readEvents(from io.Reader) iter.Seq2[sent, error] {
	return func(yield func(sent, error) bool) {
		lines := bufio.NewScanner(from)
		lines.Buffer(make([]byte, 64<<10), maxLine)
		var e sent
		var given bool
		for first := true; lines.Scan(); first = false {
			line := lines.Bytes()
			if first {
				line = bytes.TrimPrefix(line, []byte("\ufeff"))
			}
			if len(line) == 0 {
				if given && !yield(sent{e.kind, bytes.TrimSuffix(e.data, []byte("\n"))}, nil) {
					return
				}
				e, given = sent{data: e.data[:0]}, false
				continue
			}
			name, value, _ := bytes.Cut(line, []byte(":"))
			value = bytes.TrimPrefix(value, []byte(" "))
			switch string(name) {
			case "event":
				e.kind = string(value)
			case "data":
				if len(e.data)+len(value) > maxLine {
					yield(sent{}, fmt.Errorf("an event is longer than %d bytes", maxLine))
					return
				}
				e.data, given = append(append(e.data, value...), '\n'), true
			}
		}
		err := lines.Err()
		switch {
		case err == nil:
			err = ErrEnded
		case errors.Is(err, bufio.ErrTooLong):
			err = fmt.Errorf("an event is longer than %d bytes", maxLine)
		}
		yield(sent{}, err)
	}
}
