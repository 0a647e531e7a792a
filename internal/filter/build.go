package filter

import (
	"math"

	"palimpsest/internal/lex"
)

// builder makes the nodes of a tree within its limits.
type builder struct {
	schema        Schema
	nodes, values int
}

// node counts one node at a depth, from 1.
func (b *builder) node(depth int) *Error {
	if b.nodes++; b.nodes > MaxNodes {
		return refuse("has more than %d conditions and connectives", MaxNodes)
	}
	if depth > MaxDepth {
		return refuse("is more than %d levels deep", MaxDepth)
	}
	return nil
}

// cond makes a condition. Values are string, float64, bool, or nil for null.
func (b *builder) cond(f Field, op Op, values ...any) (Expr, *Error) {
	if b.values += len(values); b.values > MaxValues {
		return nil, refuse("has more than %d values", MaxValues)
	}
	if (op == Contains || op == IContains) && f.Type != Text && f.Type != Any {
		return nil, refuse("%s holds %s, which %s does not apply to", f, f.Type, op)
	}
	if op.ordered() && f.Type == Bool {
		return nil, refuse("%s holds %s, which have no order", f, f.Type)
	}
	c := Cond{Field: f, Op: op}
	for _, raw := range values {
		v, err := value(f, op, raw)
		if err != nil {
			return nil, err
		}
		c.Values = append(c.Values, v)
	}
	return c, nil
}

func value(f Field, op Op, raw any) (Value, *Error) {
	wrong := func() *Error { return refuse("%s compares with %s", f, f.Type) }
	switch raw := raw.(type) {
	case string:
		if len(raw) > MaxText {
			return Value{}, refuse("a value is %d bytes long, more than %d", len(raw), MaxText)
		}
		v := TextValue(raw)
		switch {
		case f.Type == Time && !v.Dated:
			return v, refuse("%s compares with %s, which %q is not", f, f.Type, lex.Clip(raw))
		case f.Type == Time:
			return TimeValue(v.At), nil
		case f.Type != Text && f.Type != Any:
			return v, wrong()
		}
		return v, nil
	case float64:
		switch {
		case f.Type != Number && f.Type != Any:
			return Value{}, wrong()
		case op == Contains || op == IContains:
			return Value{}, refuse("%s takes a string", op)
		case math.IsInf(raw, 0) || math.IsNaN(raw):
			return Value{}, refuse("a number is too large")
		}
		return NumberValue(raw), nil
	case bool:
		switch {
		case f.Type != Bool && f.Type != Any:
			return Value{}, wrong()
		case op == Contains || op == IContains || op.ordered():
			return Value{}, refuse("%s does not take true or false", op)
		}
		return BoolValue(raw), nil
	case nil:
		return Value{}, refuse("null is no value; the operator exists tells whether a field has one")
	}
	return Value{}, refuse("a value must be a string, a number, true or false")
}
