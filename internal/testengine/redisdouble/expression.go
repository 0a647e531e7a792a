package redisdouble

import (
	"math"
	"strconv"
	"strings"
)

// expression is a condition of FILTER over a row.
type expression interface {
	holds(of func(property string) cell) (bool, error)
}

type either struct{ left, right expression }

func (e either) holds(of func(property string) cell) (bool, error) {
	if ok, err := e.left.holds(of); ok || err != nil {
		return ok, err
	}
	return e.right.holds(of)
}

type both struct{ left, right expression }

func (e both) holds(of func(property string) cell) (bool, error) {
	if ok, err := e.left.holds(of); !ok || err != nil {
		return ok, err
	}
	return e.right.holds(of)
}

// comparing compares a property with a constant.
type comparing struct {
	property string
	operator string
	with     cell
}

func (e comparing) holds(of func(property string) cell) (bool, error) {
	have := of(e.property)
	if have.kind == missing {
		return false, refusal("Could not find the value for a parameter name, consider using EXISTS if applicable for %s", e.property)
	}
	if e.with.kind == number && have.kind == text {
		x, err := strconv.ParseFloat(have.text, 64)
		if err != nil {
			return false, refusal("Error converting string '%s' to number", have.text)
		}
		have = numeric(x)
	}
	if e.with.kind != have.kind {
		return false, errUnknown("a comparison of a number with a text", []string{e.property})
	}
	order := have.compare(e.with, false)
	switch e.operator {
	case "==":
		return order == 0, nil
	case "!=":
		return order != 0, nil
	case "<":
		return order < 0, nil
	case "<=":
		return order <= 0, nil
	case ">":
		return order > 0, nil
	}
	return order >= 0, nil
}

// expressionParser reads a condition from the front of rest.
type expressionParser struct {
	whole, rest string
	properties  []string
}

// parseExpression returns a condition and the properties that it names.
func parseExpression(text string) (expression, []string, error) {
	p := &expressionParser{whole: text, rest: text}
	e, err := p.disjunction()
	if err == nil && strings.TrimSpace(p.rest) != "" {
		err = p.unknown()
	}
	return e, p.properties, err
}

func (p *expressionParser) unknown() error {
	return errUnknown("FILTER", []string{p.whole, p.rest})
}

func (p *expressionParser) take(prefix string) bool {
	p.rest = strings.TrimLeft(p.rest, " ")
	rest, ok := strings.CutPrefix(p.rest, prefix)
	if ok {
		p.rest = rest
	}
	return ok
}

func (p *expressionParser) disjunction() (expression, error) {
	left, err := p.conjunction()
	for err == nil && p.take("||") {
		var right expression
		right, err = p.conjunction()
		left = either{left, right}
	}
	return left, err
}

func (p *expressionParser) conjunction() (expression, error) {
	left, err := p.comparison()
	for err == nil && p.take("&&") {
		var right expression
		right, err = p.comparison()
		left = both{left, right}
	}
	return left, err
}

func (p *expressionParser) comparison() (expression, error) {
	if p.take("(") {
		e, err := p.disjunction()
		if err == nil && !p.take(")") {
			err = p.unknown()
		}
		return e, err
	}
	if !p.take("@") {
		return nil, p.unknown()
	}
	var e comparing
	e.property = p.run(wordByte)
	p.properties = append(p.properties, e.property)
	for _, operator := range []string{"==", "!=", "<=", ">=", "<", ">"} {
		if p.take(operator) {
			e.operator = operator
			break
		}
	}
	if e.property == "" || e.operator == "" {
		return nil, p.unknown()
	}
	return p.constant(e)
}

func (p *expressionParser) constant(e comparing) (expression, error) {
	if p.take("'") {
		text, rest, ok := strings.Cut(p.rest, "'")
		if !ok || strings.Contains(text, `\`) {
			return nil, p.unknown()
		}
		p.rest, e.with = rest, textual(text)
		return e, nil
	}
	p.take("")
	x, err := strconv.ParseFloat(p.run(func(c byte) bool { return c == '-' || c == '+' || c == '.' || wordByte(c) }), 64)
	if err != nil || math.IsNaN(x) {
		return nil, p.unknown()
	}
	e.with = numeric(x)
	return e, nil
}

// run takes the bytes that belong together.
func (p *expressionParser) run(belongs func(byte) bool) string {
	n := 0
	for n < len(p.rest) && belongs(p.rest[n]) {
		n++
	}
	out := p.rest[:n]
	p.rest = p.rest[n:]
	return out
}
