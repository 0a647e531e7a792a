package redisdouble

import (
	"slices"
	"strings"
)

// row is what the steps of an aggregation pass on: a document, or a group.
type row struct {
	*document
	group map[string]cell
}

// value is a property of a row.
func (r *aggregating) value(of row, name string) cell {
	if of.document == nil {
		return of.group[name]
	}
	c, _ := r.cell(of.document, name)
	return c
}

// step turns rows into others.
type step func(rows []row) ([]row, error)

// aggregating is an FT.AGGREGATE.
type aggregating struct {
	request
	known   map[string]bool // properties that the steps so far brought
	steps   []step
	grouped bool
	groups  int
	sorted  bool
}

// aggregate is FT.AGGREGATE.
func (e *engine) aggregate(args []string) (any, error) {
	if len(args) < 2 {
		return nil, errArguments("FT.AGGREGATE")
	}
	r := &aggregating{request: request{now: e.now}, known: map[string]bool{}}
	if r.index = e.find(args[0]); r.index == nil {
		return nil, errNoIndex(args[0])
	}
	err := r.read(&words{list: args, at: 2})
	if err == nil {
		err = e.ask(&r.request, args[0], args[1])
	}
	if err != nil {
		return nil, err
	}
	if r.nearest != nil {
		return nil, errUnknown("FT.AGGREGATE of the nearest", args[1:2])
	}
	var rows []row
	r.each(func(d *document) { rows = append(rows, row{document: d}) })
	total := len(rows)
	if !r.sorted {
		slices.SortFunc(rows, func(a, b row) int { return byID(a.document, b.document) })
	}
	for _, s := range r.steps {
		if rows, err = s(rows); err != nil {
			return nil, err
		}
		r.overdue()
	}
	if r.grouped {
		total = r.groups
	}
	if r.limited {
		if !r.grouped && !r.sorted {
			total = min(total, r.offset+r.limit)
		}
		rows = page(rows, r.offset, r.limit)
	}
	shown := make([]any, len(rows))
	for i, row := range rows {
		shown[i] = pairs{"extra_attributes", r.shown(row), "values", []any{}}
	}
	return r.reply(shown, total), nil
}

// shown is a row with the properties that are known at the end; a group shows
// too which it has not.
func (r *aggregating) shown(of row) pairs {
	out := pairs{}
	for name := range r.known {
		if c := r.value(of, name); c.kind != missing {
			out = append(out, name, c.String())
		} else if r.grouped {
			out = append(out, name, nil)
		}
	}
	return out
}

func (r *aggregating) read(w *words) error {
	for w.more() {
		known, err := r.common(w)
		switch {
		case known:
		case r.limited:
			err = errUnknown("a step behind LIMIT", w.rest())
		case w.take("LOAD"):
			var names []string
			if names, err = w.count(); err == nil {
				err = r.load(names, anywhere)
			}
		case w.take("FILTER"):
			err = r.filterBy(w.next())
		case w.take("SORTBY"):
			err = r.sortBy(w)
		case w.take("GROUPBY"):
			err = r.groupBy(w)
		default:
			err = errUnknown("FT.AGGREGATE", w.rest())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Where a property is looked for.
const (
	anywhere   = ""
	inPipeline = "pipeline"
	inSchema   = "schema"
)

// load makes properties known. Those without a LOAD must be in the schema; where
// names the other possible sources, for the error.
func (r *aggregating) load(names []string, where string) error {
	for _, name := range names {
		name = strings.TrimPrefix(name, "@")
		if !r.known[name] && (r.grouped || where != anywhere && r.byName[name] == nil) {
			return refusal("Property `%s` not loaded nor in %s", name, where)
		}
		r.known[name] = true
	}
	return nil
}

func (r *aggregating) filterBy(text string) error {
	e, properties, err := parseExpression(text)
	if err != nil {
		return err
	}
	if err := r.load(properties, inPipeline); err != nil {
		return err
	}
	r.steps = append(r.steps, func(rows []row) (kept []row, err error) {
		for _, row := range rows {
			ok, err := e.holds(func(name string) cell { return r.value(row, name) })
			if err != nil {
				return nil, err
			}
			if ok {
				kept = append(kept, row)
			}
		}
		return kept, nil
	})
	return nil
}

// order is one property to sort by.
type order struct {
	property   string
	descending bool
}

func (r *aggregating) sortBy(w *words) error {
	list, err := w.count()
	if err != nil {
		return err
	}
	by := make([]order, 0, len(list))
	var names []string
	for _, word := range list {
		switch name, is := strings.CutPrefix(word, "@"); {
		case is:
			by = append(by, order{property: name})
			names = append(names, name)
		case len(by) > 0 && strings.EqualFold(word, "DESC"):
			by[len(by)-1].descending = true
		case len(by) == 0 || !strings.EqualFold(word, "ASC"):
			return errUnknown("SORTBY", list)
		}
	}
	if err := r.load(names, inSchema); err != nil {
		return err
	}
	r.sorted = true
	last := by[len(by)-1]
	most := -1
	if w.take("MAX") {
		if most, err = w.number(); err != nil {
			return err
		}
	}
	compare := func(a, b row) int {
		for _, o := range by {
			if n := r.value(a, o.property).compare(r.value(b, o.property), o.descending); n != 0 {
				return n
			}
		}
		switch {
		case a.document == nil:
			return 0
		case last.descending: // which the order of the ids follows
			return byID(b.document, a.document)
		}
		return byID(a.document, b.document)
	}
	r.steps = append(r.steps, func(rows []row) ([]row, error) {
		switch {
		case most == 0:
			most = len(rows)
		case most < 0 && r.limited:
			most = r.offset + r.limit
		case most < 0:
			most = defaultLimit
		}
		return top(rows, most, compare), nil
	})
	return nil
}

// reducer makes one cell of a group's rows.
type reducer struct {
	name   string
	reduce func(rows []row) cell
}

func (r *aggregating) groupBy(w *words) error {
	names, err := w.count()
	if err != nil {
		return err
	}
	if err := r.load(names, inPipeline); err != nil {
		return err
	}
	for i, name := range names {
		names[i] = strings.TrimPrefix(name, "@")
	}
	var reducers []reducer
	for w.take("REDUCE") {
		one, err := r.reducer(w)
		if err != nil {
			return err
		}
		reducers = append(reducers, one)
	}
	r.grouped, r.known = true, map[string]bool{}
	for _, name := range names {
		r.known[name] = true
	}
	for _, one := range reducers {
		r.known[one.name] = true
	}
	r.steps = append(r.steps, func(rows []row) ([]row, error) {
		groups := r.group(rows, names, reducers)
		r.groups = len(groups)
		return groups, nil
	})
	return nil
}

func (r *aggregating) reducer(w *words) (reducer, error) {
	function := strings.ToUpper(w.next())
	args, err := w.count()
	if err != nil {
		return reducer{}, err
	}
	if err := r.load(args, inPipeline); err != nil {
		return reducer{}, err
	}
	if !w.take("AS") {
		return reducer{}, errUnknown("REDUCE without AS", w.rest())
	}
	one := reducer{name: w.next()}
	switch {
	case function == "COUNT" && len(args) == 0:
		one.reduce = func(rows []row) cell { return numeric(float64(len(rows))) }
	case (function == "SUM" || function == "MIN") && len(args) == 1:
		property := strings.TrimPrefix(args[0], "@")
		if f := r.byName[property]; f == nil || f.kind != numericField {
			return one, errUnknown(function+" of what is no number", args)
		}
		one.reduce = func(rows []row) cell { return r.folded(rows, property, function) }
	default:
		return one, errUnknown("REDUCE "+function, args)
	}
	return one, nil
}

// folded is the sum or the least of a property.
func (r *aggregating) folded(rows []row, property, function string) cell {
	sum, n := 0.0, 0
	for _, row := range rows {
		c := r.value(row, property)
		switch {
		case c.kind != number:
			continue
		case function == "SUM":
			sum += c.number
		case n == 0 || c.number < sum:
			sum = c.number
		}
		n++
	}
	if n == 0 {
		return textual("nan")
	}
	return numeric(sum)
}

// group makes one row of all that share the properties' values, in the order of
// those.
func (r *aggregating) group(rows []row, names []string, reducers []reducer) []row {
	key := func(one row) string {
		parts := make([]string, len(names))
		for i, name := range names {
			parts[i] = r.value(one, name).String()
		}
		return strings.Join(parts, "\x00")
	}
	slices.SortStableFunc(rows, func(a, b row) int { return strings.Compare(key(a), key(b)) })
	var out []row
	for len(rows) > 0 {
		n := 1
		for n < len(rows) && key(rows[n]) == key(rows[0]) {
			n++
		}
		values := map[string]cell{}
		for _, name := range names {
			values[name] = r.value(rows[0], name)
		}
		for _, one := range reducers {
			values[one.name] = one.reduce(rows[:n])
		}
		out = append(out, row{group: values})
		rows = rows[n:]
	}
	return out
}
