package redis

import (
	"bytes"
	"fmt"
	"strconv"

	goredis "github.com/redis/go-redis/v9"
)

// record is a hash, or some fields of one. An absent field is empty.
type record interface {
	// empty: the row is gone since it was found, or never was there.
	empty() bool
	get(name string) string
	// view may be of a buffer that is used again, once the answer is freed.
	view(name string) []byte
}

// fields are those of a hash.
type fields map[string]string

func (f fields) empty() bool               { return f["b"] == "" }
func (f fields) get(name string) string    { return f[name] }
func (f fields) view(name string) []byte   { return []byte(f[name]) }
func (f fields) uint(name string) uint64   { return toUint(f[name]) }
func (f fields) float(name string) float64 { return toFloat(f[name]) }

func texts(reply any) []string {
	list, _ := reply.([]any)
	out := make([]string, len(list))
	for i, v := range list {
		out[i] = text(v)
	}
	return out
}

// with is a command that ends in a list of texts.
func with(texts []string, begin ...any) []any {
	for _, t := range texts {
		begin = append(begin, t)
	}
	return begin
}

func toUint(text string) uint64 {
	n, _ := strconv.ParseUint(text, 10, 64) // absent is 0
	return n
}

func toInt(text string) int64 {
	n, _ := strconv.ParseInt(text, 10, 64) // absent is 0
	return n
}

func toFloat(text string) float64 {
	x, _ := strconv.ParseFloat(text, 64) // absent is 0
	return x
}

// found is one row of an answer, as it stands in the reply.
type found struct {
	score float64
	key   []byte
	cells []cell
}

type cell struct{ name, value []byte }

func (f found) view(name string) []byte {
	for _, c := range f.cells {
		if string(c.name) == name {
			return c.value
		}
	}
	return nil
}

func (f found) get(name string) string { return string(f.view(name)) }

func (f found) empty() bool { return len(f.view("b")) == 0 }

// parseAll parses rows, leaving out empty ones.
func parseAll[T any, R record](rows []R, parse func(into *T, row R) error) ([]T, error) {
	list := make([]T, 0, len(rows))
	for _, row := range rows {
		if row.empty() {
			continue
		}
		list = append(list, *new(T))
		if err := parse(&list[len(list)-1], row); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// decodeBody decodes the body of a row that is all of it.
func decodeBody[T any, R record](into *T, row R) error { return decode("row", row.view("b"), into) }

// answer is what a search gave.
type answer struct {
	total uint64
	rows  []found
	reply *bytes.Buffer
}

// free lets the next search have the memory. Nothing of the rows may be looked at any
// more; strings that came from them are copies.
func (a answer) free() {
	if a.reply != nil && a.reply.Cap() <= maxKept {
		buffers.Put(a.reply)
	}
}

// answerOf is the reply of a search.
func answerOf(reply any) answer {
	a, _ := reply.(answer)
	return a
}

// rejection is a search that the server refused.
type rejection string

func (r rejection) Error() string { return string(r) }

// RedisError makes it what the driver would call it: a [goredis.Error].
func (r rejection) RedisError() {}

// parseAnswer reads the reply of FT.SEARCH and FT.AGGREGATE in protocol 3. A
// warning means that rows are missing.
func parseAnswer(reply []byte) (a answer, err error) {
	w := &wire{rest: reply}
	if bytes.HasPrefix(reply, []byte("-")) {
		return a, rejection(w.word())
	}
	w.table(func(key []byte) {
		switch string(key) {
		case "total_results":
			a.total = toUint(string(w.word()))
		case "results":
			w.list(func(n int) { a.rows = make([]found, 0, n) }, func() { a.rows = append(a.rows, parseRow(w)) })
		case "warning":
			w.list(nil, func() { err = fmt.Errorf("%w: %s", errPartial, w.word()) })
		default:
			w.skip()
		}
	})
	if w.err != nil {
		return answer{}, w.err
	}
	return a, err
}

func parseRow(w *wire) (f found) {
	w.table(func(key []byte) {
		switch string(key) {
		case "id":
			f.key = w.word()
		case "extra_attributes":
			f.cells = make([]cell, 0, 4)
			w.table(func(name []byte) { f.cells = append(f.cells, cell{name, w.word()}) })
		default:
			w.skip()
		}
	})
	return f
}

// hashOf reads a hash as a map (protocol 3) or a flat list (from a script).
func hashOf(reply any) fields {
	switch m := reply.(type) {
	case map[any]any:
		out := make(fields, len(m))
		for k, v := range m {
			out[text(k)] = text(v)
		}
		return out
	case []any:
		out := make(fields, len(m)/2)
		for i := 0; i+1 < len(m); i += 2 {
			out[text(m[i])] = text(m[i+1])
		}
		return out
	}
	return fields{}
}

// pick pairs the names of an HMGET with its reply, leaving out what is absent.
func pick(names []string, reply any) fields {
	values, _ := reply.([]any)
	out := fields{}
	for i, v := range values {
		if v != nil && i < len(names) {
			out[names[i]] = text(v)
		}
	}
	return out
}

func text(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case []byte:
		return string(v)
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	case goredis.Error:
		return ""
	}
	return fmt.Sprint(v)
}
