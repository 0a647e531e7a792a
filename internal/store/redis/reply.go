package redis

import (
	"fmt"
	"strconv"

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

// parseAnswer reads the reply of FT.SEARCH and FT.AGGREGATE in protocol 3. A
// warning means that rows are missing.
func parseAnswer(reply any) (answer, error) {
	m, ok := reply.(map[any]any)
	if !ok {
		return answer{}, fmt.Errorf("redis: search answered with %T", reply)
	}
	if warnings, _ := m["warning"].([]any); len(warnings) > 0 {
		return answer{}, fmt.Errorf("redis: %w: %v", errPartial, warnings[0])
	}
	total, _ := m["total_results"].(int64)
	a := answer{total: uint64(max(total, 0))}
	rows, _ := m["results"].([]any)
	for _, r := range rows {
		row, ok := r.(map[any]any)
		if !ok {
			continue
		}
		f := found{key: text(row["id"]), fields: hashOf(row["extra_attributes"])}
		f.score, _ = row["score"].(float64)
		a.rows = append(a.rows, f)
	}
	return a, nil
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
