package filter

import (
	"strconv"
	"time"
)

// Leaves calls yield with each value in metadata that a condition can compare, and the
// path of the field that has it, until it returns false.
func Leaves(metadata map[string]any, yield func(path string, v Value) bool) {
	for key, below := range metadata {
		if !leavesAt(key, below, yield) {
			return
		}
	}
}

func leavesAt(path string, v any, yield func(string, Value) bool) bool {
	switch v := v.(type) {
	case map[string]any:
		for key, below := range v {
			if !leavesAt(path+"."+key, below, yield) {
				return false
			}
		}
		return true
	case []any:
		for _, item := range v {
			if !leavesAt(path, item, yield) {
				return false
			}
		}
		return true
	case string:
		return yield(path, TextValue(v))
	case bool:
		return yield(path, BoolValue(v))
	}
	if n, ok := numberOf(v); ok {
		return yield(path, NumberValue(n))
	}
	return true
}

// Key is the same for values in metadata of which each equals the other, and for no
// others.
func (v Value) Key() string {
	switch {
	case v.Type == Bool:
		return "b" + strconv.FormatBool(v.Bool)
	case v.Type == Number:
		return "n" + strconv.FormatFloat(v.Number+0, 'g', -1, 64) // there is no negative zero
	case v.Dated:
		return "t" + v.At.UTC().Format(time.RFC3339Nano)
	}
	return "s" + v.Text
}
