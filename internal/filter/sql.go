package filter

import "strings"

// SQL is a condition with its parameters.
type SQL struct {
	Text string
	Args []any
}

// SQLBackend is a [Backend] that translates conditions by cond.
func SQLBackend(cond func(c Cond, negated bool) (SQL, bool)) Backend[SQL] {
	and := func(list []SQL) SQL { return JoinSQL(list, " AND ") }
	or := func(list []SQL) SQL { return JoinSQL(list, " OR ") }
	return Backend[SQL]{Cond: cond, And: and, Or: or, None: SQL{Text: "FALSE"}}
}

// JoinSQL joins conditions, at least one, by an operator. It joins them as a tree of
// little depth: SQLite refuses one of more than 1,000 levels, and a chain has one for
// each operator.
func JoinSQL(list []SQL, operator string) SQL {
	var out SQL
	texts := make([]string, len(list))
	for i, c := range list {
		texts[i] = c.Text
		out.Args = append(out.Args, c.Args...)
	}
	out.Text = balanced(texts, operator)
	return out
}

func balanced(texts []string, operator string) string {
	if len(texts) <= 2 {
		return "(" + strings.Join(texts, operator) + ")"
	}
	half := len(texts) / 2
	return "(" + balanced(texts[:half], operator) + operator + balanced(texts[half:], operator) + ")"
}
