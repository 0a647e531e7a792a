package redisdouble

import (
	"errors"
	"math"
	"strconv"
	"strings"
)

// question is a whole query: a filter, and the nearest that pass it.
type question struct {
	filter  node
	nearest *nearest // nil for all
}

// nearest is a KNN clause.
type nearest struct {
	k int
	*field
	to []float32
	as string // the name of the distance
}

// parser reads a query of dialect 2.
type parser struct {
	tokens []token
	at     int
	*index
	params   map[string]string
	verbatim bool // the caller asked for terms as they are
}

func parse(ix *index, query string, params map[string]string, verbatim bool) (question, error) {
	tokens, err := lex(query)
	if err != nil {
		return question{}, err
	}
	p := &parser{tokens: tokens, index: ix, params: params, verbatim: verbatim}
	var q question
	if p.take('*') {
		q.filter = everything{}
	} else if q.filter, err = p.union(nil); err != nil {
		return q, err
	}
	if p.take(arrowToken) {
		if q.nearest, err = p.knn(); err != nil {
			return q, err
		}
	}
	if p.peek().kind != endToken {
		return q, p.unexpected()
	}
	return q, nil
}

func (p *parser) peek() token { return p.tokens[p.at] }

func (p *parser) take(kind rune) bool {
	if p.peek().kind != kind {
		return false
	}
	p.at++
	return true
}

func (p *parser) want(kind rune) error {
	if !p.take(kind) {
		return p.unexpected()
	}
	return nil
}

// unexpected refuses the next token: with the error of the server if it is a syntax
// error there, and with that of the double if only the double does not know it.
func (p *parser) unexpected() error {
	t := p.peek()
	if strings.ContainsRune("%;", t.kind) {
		return errUnknown("query syntax", []string{t.text})
	}
	return syntaxError(t)
}

// param is the value of a parameter.
func (p *parser) param(name string) (string, error) {
	value, ok := p.params[name]
	if !ok {
		return "", refusal("No such parameter `%s`", name)
	}
	return value, nil
}

// union reads alternatives; in is the text field that terms are looked for in,
// nil for all.
func (p *parser) union(in *field) (node, error) {
	var list union
	for {
		n, err := p.intersection(in)
		if err != nil {
			return nil, err
		}
		list = append(list, n)
		if !p.take('|') {
			break
		}
	}
	if len(list) == 1 {
		return list[0], nil
	}
	return list, nil
}

func (p *parser) intersection(in *field) (node, error) {
	var list intersection
	for {
		n, err := p.clause(in)
		if err != nil {
			return nil, err
		}
		list = append(list, n)
		if k := p.peek().kind; k == endToken || k == arrowToken || k == '|' || k == ')' {
			break
		}
	}
	if len(list) == 1 {
		return list[0], nil
	}
	return list, nil
}

func (p *parser) clause(in *field) (node, error) {
	switch t := p.peek(); t.kind {
	case '-':
		p.at++
		n, err := p.clause(in)
		return negation{n}, err
	case '~':
		p.at++
		n, err := p.clause(in)
		return optional{n}, err
	case '(':
		p.at++
		n, err := p.union(in)
		if err == nil {
			err = p.want(')')
		}
		if err != nil {
			return nil, err
		}
		return p.weighed(n)
	case nameToken:
		p.at++
		return p.fieldClause(t)
	case wordToken, paramToken:
		return p.term(in)
	default:
		return nil, p.unexpected()
	}
}

// weighed reads the attributes of a condition, if it has any: =>{$weight:0}. The double
// knows no others.
func (p *parser) weighed(n node) (node, error) {
	if p.peek().kind != arrowToken || p.tokens[p.at+1].kind != '{' {
		return n, nil
	}
	for _, want := range []token{{kind: arrowToken}, {kind: '{'}, {kind: paramToken, text: "weight"}, {kind: ':'}, {kind: wordToken, text: "0"}, {kind: '}'}} {
		t := p.peek()
		if t.kind != want.kind || want.text != "" && t.text != want.text {
			return nil, errUnknown("query attributes", []string{t.text})
		}
		p.at++
	}
	return unweighted{n}, nil
}

// term reads one word of a text. That of a parameter is looked for as it is.
func (p *parser) term(in *field) (node, error) {
	whole := p.peek().kind == paramToken
	word, err := p.word()
	if err != nil {
		return nil, err
	}
	if p.peek().kind == '*' || !p.verbatim {
		return nil, errUnknown("terms that are not VERBATIM", []string{word})
	}
	if !whole && len(tokens(word)) != 1 {
		return nil, errUnknown("text", []string{word})
	}
	return term{in, strings.ToLower(word)}, nil
}

// word is the next token's text, or the parameter's that it names.
func (p *parser) word() (string, error) {
	t := p.peek()
	switch t.kind {
	case wordToken, quoteToken:
		p.at++
		return t.text, nil
	case paramToken:
		p.at++
		return p.param(t.text)
	}
	return "", p.unexpected()
}

func (p *parser) fieldClause(name token) (node, error) {
	f := p.byName[name.text]
	if f == nil {
		return nil, refusal("Unknown field at offset %d near %s", name.at, name.text)
	}
	expect := func(k kind) error {
		if f.kind != k {
			return refusal("Expected a %s field at offset %d near %s", k, name.at, name.text)
		}
		return nil
	}
	if t := p.peek(); t.kind == compareToken {
		p.at++
		return p.comparison(f, t.text, expect(numericField))
	}
	if err := p.want(':'); err != nil {
		return nil, err
	}
	switch p.peek().kind {
	case '{':
		p.at++
		n, err := p.tagClause(f)
		if err = errors.Join(err, expect(tagField)); err != nil {
			return nil, err
		}
		return p.weighed(n)
	case '[':
		p.at++
		n, err := p.rangeClause(f)
		return n, errors.Join(err, expect(numericField))
	}
	if err := expect(textField); err != nil {
		return nil, err
	}
	return p.clause(f)
}

func (p *parser) tagClause(f *field) (node, error) {
	n := tagged{field: f}
	for {
		var words []string
		for k := p.peek().kind; k == wordToken || k == quoteToken || k == paramToken; k = p.peek().kind {
			word, err := p.word()
			if err != nil {
				return nil, err
			}
			words = append(words, word)
		}
		if len(words) == 0 {
			return nil, p.unexpected()
		}
		n.tags = append(n.tags, f.fold(strings.Join(words, " ")))
		if p.take('}') {
			return n, nil
		}
		if err := p.want('|'); err != nil {
			return nil, err
		}
	}
}

func (p *parser) rangeClause(f *field) (node, error) {
	n := within{field: f}
	var err error
	if n.low, n.above, err = p.bound(); err != nil {
		return nil, err
	}
	if n.high, n.below, err = p.bound(); err != nil {
		return nil, err
	}
	if n.low > n.high {
		return nil, refusal("Invalid numeric range (min > max): @%s:[%f %f]", f.name, n.low, n.high)
	}
	return n, p.want(']')
}

// bound reads an end of a range; a parenthesis leaves the number itself out.
func (p *parser) bound() (x float64, open bool, err error) {
	open = p.take('(')
	x, err = p.number()
	return x, open, err
}

func (p *parser) number() (float64, error) {
	sign := 1.0
	if p.take('-') {
		sign = -1
	} else {
		p.take('+')
	}
	t := p.peek()
	word, err := p.word()
	if err != nil {
		return 0, err
	}
	if strings.EqualFold(word, "inf") {
		return math.Inf(int(sign)), nil
	}
	x, err := strconv.ParseFloat(word, 64)
	if err != nil {
		return 0, syntaxError(t)
	}
	return sign * x, nil
}

func (p *parser) comparison(f *field, operator string, err error) (node, error) {
	if err != nil {
		return nil, err
	}
	x, err := p.number()
	n := within{field: f, low: math.Inf(-1), high: math.Inf(1)}
	switch operator {
	case "==":
		n.low, n.high = x, x
	case "!=":
		return negation{within{field: f, low: x, high: x}}, err
	case ">", ">=":
		n.low, n.above = x, operator == ">"
	case "<", "<=":
		n.high, n.below = x, operator == "<"
	default:
		err = errors.Join(err, p.unexpected())
	}
	return n, err
}

// knn reads what stands between => and the end.
func (p *parser) knn() (*nearest, error) {
	if err := p.want('['); err != nil {
		return nil, err
	}
	if t := p.peek(); t.kind != wordToken || !strings.EqualFold(t.text, "KNN") {
		return nil, errUnknown("vector query", []string{t.text})
	}
	p.at++
	k, err := p.word()
	if err != nil {
		return nil, err
	}
	n := new(nearest)
	if n.k, err = strconv.Atoi(k); err != nil || n.k < 1 {
		return nil, errUnknown("KNN", []string{k})
	}
	name, blob := p.peek(), ""
	if err := p.want(nameToken); err != nil {
		return nil, err
	}
	if t := p.peek(); t.kind != paramToken {
		return nil, p.unexpected()
	}
	if blob, err = p.word(); err != nil {
		return nil, err
	}
	if n.field = p.byName[name.text]; n.field == nil || n.kind != vectorField {
		return nil, refusal("Unknown field at offset %d near %s", name.at, name.text)
	}
	if n.to, err = n.parseVector(blob); err != nil {
		return nil, refusal("Error parsing vector similarity query: query vector blob size (%d) does not match index's expected size (%d).",
			len(blob), 4*n.dimensions)
	}
	n.as = "__" + n.name + "_score"
	return n, p.knnOptions(n)
}

func (p *parser) knnOptions(n *nearest) error {
	for !p.take(']') {
		option := p.peek().text
		value := p.tokens[min(p.at+1, len(p.tokens)-1)]
		switch {
		case strings.EqualFold(option, "HYBRID_POLICY") && strings.EqualFold(value.text, "ADHOC_BF"):
		case strings.EqualFold(option, "AS") && value.kind == wordToken:
			n.as = value.text
		default:
			return p.unexpected()
		}
		p.at += 2
	}
	return nil
}
