package filter

// Backend is how a backend expresses conditions of type T.
type Backend[T any] struct {
	// Cond returns a condition that every row fulfils that matches c or, where
	// negated, every row that does not; ok is false where the backend has none. The
	// operators ne and nin come as eq and in, negated.
	Cond    func(c Cond, negated bool) (condition T, ok bool)
	And, Or func([]T) T // Or is nil where the backend has no disjunction
	// None is fulfilled by no row.
	None T
}

// Weaken translates e into a condition that every row fulfils that matches e. Other
// rows may fulfil it, too: check with [Match] what it finds. ok is false where every row may match.
func Weaken[T any](e Expr, b Backend[T]) (condition T, ok bool) { return weaken(e, false, b) }

func weaken[T any](e Expr, negated bool, b Backend[T]) (T, bool) {
	switch e := e.(type) {
	case Not:
		return weaken(e.Expr, !negated, b)
	case And:
		return join([]Expr(e), negated, negated, b)
	case Or:
		return join([]Expr(e), !negated, negated, b)
	case Cond:
		if op := e.Op.positive(); op != e.Op {
			e.Op, negated = op, !negated
		}
		return b.Cond(e, negated)
	}
	var every T
	return every, false
}

// join is a disjunction or a conjunction of what the operands become.
func join[T any](es []Expr, or, negated bool, b Backend[T]) (condition T, ok bool) {
	var list []T
	for _, e := range es {
		c, ok := weaken(e, negated, b)
		switch {
		case ok:
			list = append(list, c)
		case or:
			return condition, false
		}
	}
	switch {
	case or && len(list) == 0:
		return b.None, true
	case len(list) == 0:
		return condition, false
	case len(list) == 1:
		return list[0], true
	case or && b.Or == nil:
		return condition, false
	case or:
		return b.Or(list), true
	}
	return b.And(list), true
}
