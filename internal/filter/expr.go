package filter

import (
	"encoding/json"
	"slices"
	"time"
)

// The limits of a filter.
const (
	MaxDepth  = 16      // of nesting; a condition alone is 1 deep
	MaxNodes  = 256     // conditions and connectives
	MaxValues = 1000    // of all conditions together
	MaxText   = 4 << 10 // bytes of one value
	MaxField  = 512     // bytes of a field's name
	maxSteps  = 16      // of a metadata path
)

// Expr is a node of a filter: [And], [Or], [Not] or [Cond].
type Expr interface{ node() }

// And matches what all of its operands match; without any it matches everything.
type And []Expr

// Or matches what any of its operands matches; without any it matches nothing.
type Or []Expr

// Not matches what its operand does not match.
type Not struct{ Expr Expr }

// Cond compares a field.
type Cond struct {
	Field Field
	Op    Op
	// Values is one value, any number of them for in and nin, none for exists.
	Values []Value
}

func (And) node()  {}
func (Or) node()   {}
func (Not) node()  {}
func (Cond) node() {}

// Op is a comparison.
type Op string

// The comparisons.
const (
	Eq        Op = "eq"
	Ne        Op = "ne" // not eq
	Gt        Op = "gt"
	Gte       Op = "gte"
	Lt        Op = "lt"
	Lte       Op = "lte"
	In        Op = "in"
	Nin       Op = "nin" // not in
	Contains  Op = "contains"
	IContains Op = "icontains" // ignores case
	Exists    Op = "exists"
)

var ops = []Op{Eq, Ne, Gt, Gte, Lt, Lte, In, Nin, Contains, IContains, Exists}

func opNames() []string {
	names := make([]string, len(ops))
	for i, op := range ops {
		names[i] = string(op)
	}
	return names
}

// ordered reports whether op needs values that have an order.
func (op Op) ordered() bool { return op == Gt || op == Gte || op == Lt || op == Lte }

// takesList reports whether op compares with any number of values.
func (op Op) takesList() bool { return op == In || op == Nin }

// Type is what a field holds, and what a value is.
type Type int

// The types.
const (
	Any Type = iota // of metadata
	Text
	Number
	Bool
	Time
)

func (t Type) String() string {
	return [...]string{"anything", "a string", "a number", "true or false", "a time (RFC 3339 or YYYY-MM-DD)"}[t]
}

// Value is what a field is compared with. Type says which member counts.
type Value struct {
	Type   Type
	Text   string
	Number float64
	Bool   bool
	At     time.Time
	// Dated says that Text reads as the time At.
	Dated  bool
	folded string // Text without case
}

// TextValue is a string.
func TextValue(text string) Value {
	at, dated := readTime(text)
	return Value{Type: Text, Text: text, At: at, Dated: dated, folded: fold(text)}
}

// NumberValue is a number.
func NumberValue(n float64) Value { return Value{Type: Number, Number: n} }

// BoolValue is true or false.
func BoolValue(b bool) Value { return Value{Type: Bool, Bool: b} }

// TimeValue is an instant, for a field of type [Time].
func TimeValue(at time.Time) Value { return Value{Type: Time, At: at} }

// readTime reads RFC 3339, or a date, which means its first moment in UTC.
func readTime(text string) (time.Time, bool) {
	if len(text) < len(time.DateOnly) || text[4] != '-' {
		return time.Time{}, false
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		at, err = time.Parse(time.DateOnly, text)
	}
	return at, err == nil
}

// OneOf is the condition that a built-in text field has one of the values. It is
// bound by no limit.
func OneOf(s Schema, field string, values ...string) Expr {
	f, err := s.Field(field)
	if err != nil {
		return Or{}
	}
	c := Cond{Field: f, Op: In, Values: make([]Value, len(values))}
	for i, v := range values {
		c.Values[i] = Value{Type: Text, Text: v}
	}
	return c
}

// Present is the condition that a built-in field has a value.
func Present(s Schema, field string) Expr {
	f, err := s.Field(field)
	if err != nil {
		return Or{}
	}
	return Cond{Field: f, Op: Exists}
}

// JSON is e in the native notation.
func JSON(e Expr) json.RawMessage {
	raw, err := json.Marshal(plain(e))
	if err != nil { // strings and finite numbers always marshal
		return nil
	}
	return raw
}

func plain(e Expr) any {
	list := func(es []Expr) []any {
		out := make([]any, len(es))
		for i := range es {
			out[i] = plain(es[i])
		}
		return out
	}
	switch e := e.(type) {
	case And:
		return map[string]any{"AND": list(e)}
	case Or:
		return map[string]any{"OR": list(e)}
	case Not:
		return map[string]any{"NOT": plain(e.Expr)}
	case Cond:
		out := map[string]any{"field": e.Field.String(), "operator": e.Op}
		switch {
		case e.Op.takesList():
			values := make([]any, len(e.Values))
			for i, v := range e.Values {
				values[i] = v.plain()
			}
			out["value"] = values
		case e.Op != Exists:
			out["value"] = e.Values[0].plain()
		}
		return out
	}
	return nil
}

func (v Value) plain() any {
	switch v.Type {
	case Number:
		return v.Number
	case Bool:
		return v.Bool
	case Time:
		return v.At.Format(time.RFC3339Nano)
	case Text, Any:
	}
	return v.Text
}

// Both is the conjunction of filters, any of which may be nil; nil where all are.
func Both(es ...Expr) Expr {
	es = slices.DeleteFunc(slices.Clone(es), func(e Expr) bool { return e == nil })
	switch len(es) {
	case 0:
		return nil
	case 1:
		return es[0]
	}
	return And(es)
}

// depth is how many levels e has.
func depth(e Expr) int {
	most := 0
	below := func(es ...Expr) int {
		for _, x := range es {
			most = max(most, depth(x))
		}
		return 1 + most
	}
	switch e := e.(type) {
	case And:
		return below(e...)
	case Or:
		return below(e...)
	case Not:
		return below(e.Expr)
	}
	return 1
}
