package redis

import (
	"fmt"
	"strconv"
	"strings"

	goredis "github.com/redis/go-redis/v9"
)

// fields are those of a hash.
type fields map[string]string

func (f fields) uint(name string) uint64 {
	n, _ := strconv.ParseUint(f[name], 10, 64) // absent is 0
	return n
}

func (f fields) int(name string) int64 {
	n, _ := strconv.ParseInt(f[name], 10, 64) // absent is 0
	return n
}

func (f fields) float(name string) float64 {
	x, _ := strconv.ParseFloat(f[name], 64) // absent is 0
	return x
}

// found is one row of an answer.
type found struct {
	key   string
	score float64
	fields
}

// answer is what a search gave.
type answer struct {
	total uint64
	rows  []found
}

// answerOf is the reply of a search.
func answerOf(reply any) answer {
	a, _ := reply.(answer)
	return a
}

// rejection is a search that the server refused.
type rejection string

func (r rejection) Error() string { return string(r) }

// RedisError makes it an error of the server to the driver.
func (r rejection) RedisError() {}

// parseAnswer reads the reply of FT.SEARCH and FT.AGGREGATE in protocol 3. A
// warning means that rows are missing.
func parseAnswer(reply string) (a answer, err error) {
	if strings.HasPrefix(reply, "-") {
		line, _, _ := strings.Cut(reply[1:], "\r\n")
		return a, rejection(line)
	}
	w := &wire{rest: reply}
	w.table(func(key string) {
		switch key {
		case "total_results":
			a.total, _ = strconv.ParseUint(w.word(), 10, 64) // never below 0
		case "results":
			w.list(func() { a.rows = append(a.rows, parseRow(w)) })
		case "warning":
			w.list(func() { err = fmt.Errorf("%w: %s", errPartial, w.word()) })
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
	w.table(func(key string) {
		switch key {
		case "id":
			f.key = w.word()
		case "extra_attributes":
			f.fields = make(fields, 8)
			w.table(func(name string) { f.fields[name] = w.word() })
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
