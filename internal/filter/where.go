package filter

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"palimpsest/internal/lex"
)

// ParseWhere reads the fragment of SQL that follows WHERE: comparisons of a column
// with literals by =, <>, !=, <, <=, >, >=, [NOT] IN, [NOT] BETWEEN, [NOT] LIKE and
// ILIKE '%text%', IS [NOT] NULL, joined by AND, OR, NOT and parentheses. The empty
// text matches everything. A comparison with a missing column is false, not null,
// so that <>, NOT IN and NOT match it. The error is an [*Error].
func ParseWhere(text string, s Schema) (Expr, error) {
	if !utf8.ValidString(text) {
		return nil, refuse("the text is not valid UTF-8")
	}
	p := &where{builder: builder{schema: s}, lexer: lexer{text: text}}
	p.next()
	if p.kind == endToken {
		return And{}, nil
	}
	e := p.or(1)
	if p.err == nil && p.kind != endToken {
		p.fail("expected AND, OR or the end, found %s", p.token)
	}
	if p.err != nil {
		return nil, p.err
	}
	if depth(e) > MaxDepth {
		return nil, refuse("is more than %d levels deep", MaxDepth)
	}
	return e, nil
}

// where is a parser. The first error ends it: from then on every token is the end.
type where struct {
	builder
	lexer
	token
	err *Error
}

// next reads a token into p.
func (p *where) next() {
	if p.err != nil {
		return
	}
	var err *Error
	if p.token, err = p.lexer.next(); err != nil {
		p.stop(err, p.token.from)
	}
}

func (p *where) stop(err *Error, from int) {
	if p.err == nil {
		err.Offset = 1 + len([]rune(p.lexer.text[:from]))
		p.err = err
	}
	p.token = token{kind: endToken, from: from}
}

func (p *where) fail(format string, args ...any) { p.stop(refuse(format, args...), p.from) }

// keyword takes a word of SQL, if it is next.
func (p *where) keyword(word string) bool {
	if !p.is(word) {
		return false
	}
	p.next()
	return true
}

func (p *where) is(word string) bool { return p.kind == wordToken && strings.EqualFold(p.value, word) }

// sign takes a sign, if it is next.
func (p *where) sign(text string) bool {
	if p.kind != signToken || p.value != text {
		return false
	}
	p.next()
	return true
}

func (p *where) expect(text string) {
	if p.err == nil && !p.sign(text) {
		p.fail("expected %s, found %s", text, p.token)
	}
}

// count adds a node.
func (p *where) count(from int) bool {
	if err := p.node(1); err != nil {
		p.stop(err, from)
	}
	return p.err == nil
}

func (p *where) or(depth int) Expr {
	from := p.from
	list := []Expr{p.and(depth + 1)}
	for p.keyword("OR") {
		list = append(list, p.and(depth+1))
	}
	if len(list) == 1 {
		return list[0]
	}
	p.count(from)
	return Or(list)
}

func (p *where) and(depth int) Expr {
	from := p.from
	list := []Expr{p.not(depth + 1)}
	for p.keyword("AND") {
		list = append(list, p.not(depth+1))
	}
	if len(list) == 1 {
		return list[0]
	}
	p.count(from)
	return And(list)
}

func (p *where) not(depth int) Expr {
	from := p.from
	switch {
	case p.err != nil:
		return nil
	case depth > 3*MaxDepth: // an operand in parentheses is 3 levels of the grammar deeper
		p.fail("is more than %d levels deep", MaxDepth)
		return nil
	case p.keyword("NOT"):
		p.count(from)
		return Not{p.not(depth + 1)}
	case p.sign("("):
		e := p.or(depth + 1)
		p.expect(")")
		return e
	case p.keyword("TRUE"):
		p.count(from)
		return And{}
	case p.keyword("FALSE"):
		p.count(from)
		return Or{}
	}
	return p.predicate()
}

// predicate reads a comparison.
func (p *where) predicate() Expr {
	from := p.from
	if !p.count(from) {
		return nil
	}
	f, ok := p.column()
	if !ok {
		return nil
	}
	compare := func(op Op, values ...any) Expr {
		if p.err != nil {
			return nil
		}
		e, err := p.cond(f, op, values...)
		if err != nil {
			p.stop(err, from)
		}
		return e
	}
	if p.keyword("IS") {
		not := p.keyword("NOT")
		if !p.keyword("NULL") {
			p.fail("expected NULL, found %s", p.token)
		}
		if not {
			return compare(Exists)
		}
		p.count(from)
		return Not{compare(Exists)}
	}
	if not := p.keyword("NOT"); not || p.is("IN") || p.is("BETWEEN") || p.is("LIKE") || p.is("ILIKE") {
		e := p.wordy(compare)
		if not {
			p.count(from)
			return Not{e}
		}
		return e
	}
	if p.kind == signToken {
		if op, ok := signs[p.value]; ok {
			p.next()
			return compare(op, p.literal())
		}
	}
	p.fail("expected a comparison behind %s, found %s", f, p.token)
	return nil
}

var signs = map[string]Op{"=": Eq, "==": Eq, "<>": Ne, "!=": Ne, "<": Lt, "<=": Lte, ">": Gt, ">=": Gte}

// wordy reads the comparisons that are words.
func (p *where) wordy(compare func(Op, ...any) Expr) Expr {
	switch {
	case p.keyword("IN"):
		p.expect("(")
		list := []any{p.literal()}
		for p.err == nil && p.sign(",") {
			list = append(list, p.literal())
		}
		p.expect(")")
		return compare(In, list...)
	case p.keyword("BETWEEN"):
		from := p.from
		low := p.literal()
		if p.err == nil && !p.keyword("AND") {
			p.fail("expected AND, found %s", p.token)
		}
		high := p.literal()
		p.count(from)
		p.count(from)
		return And{compare(Gte, low), compare(Lte, high)}
	case p.is("LIKE"), p.is("ILIKE"):
		op := map[bool]Op{true: Contains, false: IContains}[p.is("LIKE")]
		p.next()
		from := p.from
		pattern, _ := p.literal().(string)
		inner, ok := strings.CutPrefix(pattern, "%")
		if ok {
			inner, ok = strings.CutSuffix(inner, "%")
		}
		if p.err == nil && (!ok || strings.ContainsAny(inner, "%_\\")) {
			p.stop(refuse("LIKE takes '%%text%%' alone, without other wildcards"), from)
		}
		return compare(op, inner)
	}
	p.fail("expected IN, BETWEEN or LIKE, found %s", p.token)
	return nil
}

// column reads a name, the parts of which may be quoted.
func (p *where) column() (f Field, ok bool) {
	from := p.from
	var parts []string
	for {
		if p.kind != wordToken && p.kind != quotedToken || p.kind == wordToken && slices.Contains(reserved, strings.ToUpper(p.value)) {
			p.fail("expected a column, found %s", p.token)
			return f, false
		}
		parts = append(parts, p.value)
		p.next()
		if !p.sign(".") {
			break
		}
	}
	if p.err == nil && p.kind == signToken && p.value == "(" {
		p.stop(refuse("functions are not supported: %s(", lex.Clip(strings.Join(parts, "."))), from)
	}
	if p.err != nil {
		return f, false
	}
	f, err := p.schema.Field(strings.Join(parts, "."))
	if err != nil {
		p.stop(asError(err), from)
	}
	return f, p.err == nil
}

// reserved words are no names of columns unless they are quoted.
var reserved = []string{"AND", "OR", "NOT", "IN", "BETWEEN", "LIKE", "ILIKE", "IS", "NULL", "TRUE", "FALSE", "SELECT", "EXISTS", "CASE"}

// literal reads a string, a number, TRUE or FALSE.
func (p *where) literal() any {
	t := p.token
	switch {
	case p.err != nil:
		return nil
	case t.kind == textToken:
		p.next()
		return t.value
	case t.kind == numberToken:
		n, err := strconv.ParseFloat(t.value, 64)
		if err != nil {
			p.fail("%s is no number, or too large", t)
			return nil
		}
		p.next()
		return n
	case p.keyword("TRUE"):
		return true
	case p.keyword("FALSE"):
		return false
	case p.is("NULL"):
		p.fail("nothing equals NULL; use IS NULL")
		return nil
	}
	p.fail("expected a string in single quotes, a number, TRUE or FALSE, found %s", t)
	return nil
}
