package filter

import (
	"cmp"
	"encoding/json"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/text/cases"
)

// Row gives the values of a row by the canonical names of fields: string, float64,
// bool, time.Time, []string, or for metadata a decoded JSON object. A field is missing
// whose value is nil, an empty string or list, or the zero time.
type Row func(field string) any

// Match reports whether a row matches e. It defines what filters mean.
func Match(e Expr, row Row) bool {
	switch e := e.(type) {
	case And:
		for _, x := range e {
			if !Match(x, row) {
				return false
			}
		}
		return true
	case Or:
		for _, x := range e {
			if Match(x, row) {
				return true
			}
		}
		return false
	case Not:
		return !Match(e.Expr, row)
	case Cond:
		return e.match(row)
	}
	return false
}

func (c Cond) match(row Row) bool {
	switch c.Op {
	case Ne, Nin:
		c.Op = c.Op.positive()
		return !c.match(row)
	}
	found := false
	c.Field.each(row, func(v any) bool {
		found = c.Op == Exists || c.any(v)
		return !found
	})
	return found
}

// positive is eq for ne and in for nin, which are their negations.
func (op Op) positive() Op {
	switch op {
	case Ne:
		return Eq
	case Nin:
		return In
	}
	return op
}

// each calls yield with the values that a row has in a field, until it returns
// false.
func (f Field) each(row Row, yield func(any) bool) {
	v := row(f.Name)
	if f.Name == metadataField {
		metadata, _ := v.(map[string]any)
		walk(metadata, f.Path, yield)
		return
	}
	switch v := v.(type) {
	case nil:
	case string:
		if v != "" {
			yield(v)
		}
	case time.Time:
		if !v.IsZero() {
			yield(v)
		}
	case []string:
		for _, s := range v {
			if s != "" && !yield(s) {
				return
			}
		}
	default:
		yield(v)
	}
}

// walk yields what stands at a path below v: a key may be any number of its steps,
// because a key may hold a dot. It returns false once yield does.
func walk(v any, path string, yield func(any) bool) bool {
	switch v := v.(type) {
	case map[string]any:
		if below, ok := v[path]; ok && !leaves(below, yield) {
			return false
		}
		for i := range len(path) {
			if path[i] != '.' {
				continue
			}
			if below, ok := v[path[:i]]; ok && !walk(below, path[i+1:], yield) {
				return false
			}
		}
	case []any:
		for _, item := range v {
			if !walk(item, path, yield) {
				return false
			}
		}
	}
	return true
}

// leaves yields a value, or the elements of a list, but no null.
func leaves(v any, yield func(any) bool) bool {
	switch v := v.(type) {
	case nil:
		return true
	case []any:
		for _, item := range v {
			if !leaves(item, yield) {
				return false
			}
		}
		return true
	}
	return yield(v)
}

// any reports whether a value of a row compares with one of c's as c asks.
func (c Cond) any(got any) bool {
	for _, want := range c.Values {
		if c.holds(got, want) {
			return true
		}
	}
	return false
}

func (c Cond) holds(got any, want Value) bool {
	if c.Op == Contains || c.Op == IContains {
		text, ok := got.(string)
		if !ok {
			return false
		}
		if c.Op == Contains {
			return strings.Contains(text, want.Text)
		}
		return strings.Contains(fold(text), want.folded)
	}
	n, ok := c.Field.compare(got, want)
	if !ok {
		return false
	}
	switch c.Op {
	case Eq, In:
		return n == 0
	case Gt:
		return n > 0
	case Gte:
		return n >= 0
	case Lt:
		return n < 0
	case Lte:
		return n <= 0
	case Ne, Nin, Contains, IContains, Exists:
	}
	return false
}

// compare orders a value of a row and one of a filter; ok is false where they are
// of different types, or not to be ordered.
func (f Field) compare(got any, want Value) (n int, ok bool) {
	switch got := got.(type) {
	case string:
		if want.Type != Text {
			return 0, false
		}
		if f.Type == Any && want.Dated {
			if at, dated := readTime(got); dated {
				return at.Compare(want.At), true
			}
		}
		return strings.Compare(got, want.Text), true
	case bool:
		n := 1
		if got == want.Bool {
			n = 0
		}
		return n, want.Type == Bool
	case time.Time:
		return got.Compare(want.At), want.Type == Time
	}
	number, ok := numberOf(got)
	return cmp.Compare(number, want.Number), ok && want.Type == Number
}

// numberOf reads the numbers that decoders and callers make of JSON's.
func numberOf(v any) (float64, bool) {
	switch v := v.(type) {
	case float64:
		return v, true
	case json.Number:
		n, err := v.Float64()
		return n, err == nil
	case int:
		return float64(v), true
	case int64:
		return float64(v), true
	case uint64:
		return float64(v), true
	}
	return 0, false
}

// fold removes case.
func fold(text string) string {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return cases.Fold().String(text)
		}
	}
	return strings.ToLower(text)
}
