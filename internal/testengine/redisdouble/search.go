package redisdouble

import (
	"cmp"
	"errors"
	"slices"
	"time"
)

// request is what searches of both kinds have in common.
type request struct {
	*index
	question
	now      func() time.Time
	params   map[string]string
	verbatim bool
	offset   int
	limit    int
	limited  bool
	dialect  bool      // 2 was asked for
	deadline time.Time // zero for none
	late     bool      // it has passed
}

// The server's default bounds.
const (
	defaultLimit = 10
	maxLimit     = 1_000_000
)

// tooLate is the warning on an incomplete answer.
const tooLate = "Timeout limit was reached"

// common reads an argument that both kinds know.
func (r *request) common(w *words) (known bool, err error) {
	switch {
	case w.take("VERBATIM"):
		r.verbatim = true
	case w.take("LIMIT"):
		var of, n error
		r.offset, of = w.number()
		r.limit, n = w.number()
		r.limited = true
		if err = errors.Join(of, n); err == nil && (r.offset < 0 || r.limit < 0) {
			err = errUnknown("LIMIT", w.list[w.at-2:w.at])
		}
	case w.take("TIMEOUT"):
		var ms int
		if ms, err = w.number(); ms > 0 {
			r.deadline = r.now().Add(time.Duration(ms) * time.Millisecond)
		}
	case w.take("PARAMS"):
		var list []string
		list, err = w.count()
		r.params = map[string]string{}
		for i := 0; i+1 < len(list); i += 2 {
			r.params[list[i]] = list[i+1]
		}
	case w.take("DIALECT", "2"):
		r.dialect = true
	default:
		return false, nil
	}
	return true, err
}

// ask finds the index and reads the query, when all arguments are read.
func (e *engine) ask(r *request, name, query string) error {
	if r.index = e.find(name); r.index == nil {
		return errNoIndex(name)
	}
	if !r.dialect {
		return errUnknown("a search without DIALECT 2", []string{query})
	}
	var err error
	r.question, err = parse(r.index, query, r.params, r.verbatim)
	return err
}

// overdue tells whether time is up; an answer may then be short.
func (r *request) overdue() bool {
	if !r.late && !r.deadline.IsZero() && r.now().After(r.deadline) {
		r.late = true
	}
	return r.late
}

// each calls yield with every document that passes the filter, once, until time
// is up.
func (r *request) each(yield func(*document)) {
	r.searches++
	looked := 0
	r.filter.each(r.index, func(d *document) bool {
		if looked++; looked%100 == 0 && r.overdue() {
			return false
		}
		if d.seen != r.searches && r.filter.matches(d) {
			d.seen = r.searches
			yield(d)
		}
		return true
	})
}

// top are the first n of a list in an order. The list is used up.
func top[T any](list []T, n int, compare func(a, b T) int) []T {
	if n == 0 {
		return nil
	}
	best, full := list[:0], false
	for _, x := range list {
		if full && compare(x, best[n-1]) >= 0 {
			continue
		}
		if best = append(best, x); len(best) >= 2*n {
			slices.SortFunc(best, compare)
			best, full = best[:n], true
		}
	}
	slices.SortFunc(best, compare)
	return best[:min(n, len(best))]
}

// page cuts out what LIMIT says.
func page[T any](list []T, offset, limit int) []T {
	from := min(offset, len(list))
	return list[from : from+min(limit, len(list)-from)]
}

// searching is an FT.SEARCH.
type searching struct {
	request
	noContent, withScores bool
	returned              []string // nil for all
	by                    string   // the field to sort by; "" for the score
	descending            bool
}

// search is FT.SEARCH.
func (e *engine) search(args []string) (any, error) {
	if len(args) < 2 {
		return nil, errArguments("FT.SEARCH")
	}
	r := &searching{request: request{now: e.now, limit: defaultLimit}}
	err := r.read(&words{list: args, at: 2})
	if err == nil && r.limit > maxLimit {
		err = refusal("LIMIT exceeds maximum of %d", maxLimit)
	}
	if err == nil {
		err = e.ask(&r.request, args[0], args[1])
	}
	if err != nil {
		return nil, err
	}
	list, total, err := r.found()
	if err != nil {
		return nil, err
	}
	rows := []any{}
	for _, m := range page(list, r.offset, r.limit) {
		rows = append(rows, r.row(m))
	}
	r.overdue()
	return r.reply(rows, total), nil
}

func (r *searching) read(w *words) error {
	for w.more() {
		known, err := r.common(w)
		switch {
		case known:
		case w.take("NOCONTENT"):
			r.noContent = true
		case w.take("WITHSCORES"):
			r.withScores = true
		case w.take("SCORER", "BM25STD"):
		case w.take("RETURN"):
			r.returned, err = w.count()
		case w.take("SORTBY"):
			r.by = w.next()
			if r.descending = w.take("DESC"); !r.descending {
				w.take("ASC")
			}
		default:
			err = errUnknown("FT.SEARCH", w.rest())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// match is a document that was found.
type match struct {
	*document
	score    float64
	distance float64
	by       cell
}

// found are the rows to the end of the page, in the order asked for, and how
// many there are in all.
func (r *searching) found() (list []match, total int, err error) {
	f := r.byName[r.by]
	byDistance := r.nearest != nil && r.by == r.nearest.as
	if r.by != "" && f == nil && !byDistance {
		return nil, 0, refusal("Property `%s` not loaded nor in schema", r.by)
	}
	if r.nearest == nil && r.limit == 0 {
		r.each(func(*document) { total++ })
		return nil, total, nil
	}
	r.each(func(d *document) {
		m := match{document: d}
		if r.nearest != nil {
			v := d.vectors[r.nearest.column]
			if v == nil {
				return
			}
			m.distance = distance(r.nearest.to, v)
		}
		list = append(list, m)
	})
	if r.nearest != nil {
		list = top(list, r.nearest.k, func(a, b match) int { return cmp.Or(cmp.Compare(a.distance, b.distance), byID(a.document, b.document)) })
	}
	for i := range list {
		switch m := &list[i]; {
		case byDistance:
			m.by = numeric(m.distance)
		case f != nil:
			m.by, _ = r.cell(m.document, r.by)
		default:
			m.score = r.filter.score(r.index, m.document)
		}
	}
	total = len(list)
	return top(list, r.offset+r.limit, r.compare), total, nil
}

// compare is the order asked for; ids tell equals apart.
func (r *searching) compare(a, b match) int {
	ids := byID(a.document, b.document)
	if r.descending {
		ids = -ids
	}
	return cmp.Or(a.by.compare(b.by, r.descending), cmp.Compare(b.score, a.score), ids)
}

func (r *searching) row(m match) any {
	row := pairs{"id", m.key}
	if r.withScores {
		row = append(row, "score", m.score)
	}
	if !r.noContent {
		row = append(row, "extra_attributes", r.content(m))
	}
	return append(row, "values", []any{})
}

func (r *searching) content(m match) pairs {
	out := pairs{}
	if r.returned == nil {
		for name, value := range m.hash {
			out = append(out, name, value)
		}
		return out
	}
	for _, name := range r.returned {
		if r.nearest != nil && name == r.nearest.as {
			out = append(out, name, numberText(m.distance))
		} else if c, ok := r.cell(m.document, name); ok {
			out = append(out, name, c.String())
		}
	}
	return out
}

// reply is the answer to both kinds of search.
func (r *request) reply(rows []any, total int) any {
	warnings := []string{}
	if r.late {
		warnings = append(warnings, tooLate)
	}
	return pairs{"attributes", []any{}, "format", "STRING", "results", rows, "total_results", total, "warning", warnings}
}
