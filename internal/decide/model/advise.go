package model

import (
	"slices"
	"strings"

	"palimpsest/internal/decide"
	"palimpsest/internal/lex"
	"palimpsest/pkg/events"
)

// alike is from which similarity on two texts of one subject count as the same.
const alike = 0.3

// advise makes advice of the operations that pass their check, by the id of the
// candidate. One that does not pass spoils the others of its candidate.
func advise(part []open, ops []operation, by string) map[string]decide.Advice {
	out := map[string]decide.Advice{}
	for i, o := range part {
		var mine []operation
		for _, op := range ops {
			if op.Candidate == i+1 {
				mine = append(mine, op)
			}
		}
		if a, ok := o.advice(mine); ok {
			a.By = by
			out[o.c.ID] = a
		}
	}
	return out
}

// advice joins the operations on one candidate: an ADD alone; NONE or UPDATE alone;
// DELETEs, with or without an ADD.
func (o open) advice(ops []operation) (a decide.Advice, ok bool) {
	for _, op := range ops {
		kind := kinds[strings.ToUpper(strings.TrimSpace(op.Operation))]
		if kind == events.DeltaAdd {
			a.Keep = true
			continue
		}
		f, known := o.target(op.Target)
		if kind == "" || !known || a.Op != "" && (a.Op != events.DeltaDelete || kind != events.DeltaDelete) || !o.allows(kind, f) {
			return a, false
		}
		a.Op, a.Facts = kind, append(a.Facts, f.ID)
		if kind == events.DeltaUpdate {
			if a.Text, ok = o.merged(op.Text, f); !ok {
				return a, false
			}
		}
	}
	if a.Op == "" && a.Keep {
		a.Op = events.DeltaAdd
	}
	if a.Keep && (a.Op == events.DeltaNoop || a.Op == events.DeltaUpdate) {
		return a, false
	}
	return a, a.Op != ""
}

var kinds = map[string]events.DeltaKind{
	"ADD": events.DeltaAdd, "UPDATE": events.DeltaUpdate, "DELETE": events.DeltaDelete, "NONE": events.DeltaNoop,
}

func (o open) target(name string) (events.Fact, bool) {
	for i, f := range o.known {
		if strings.EqualFold(strings.TrimSpace(name), aliasOf(i)) {
			return f, true
		}
	}
	return events.Fact{}, false
}

// allows holds an operation to what the candidate and its target have in common.
// A candidate says nothing of another subject's facts, and ends none that it shares
// neither attribute nor words with.
func (o open) allows(kind events.DeltaKind, f events.Fact) bool {
	if lex.Fold(f.Subject) != lex.Fold(o.c.Subject) {
		return false
	}
	attribute := f.Predicate == o.c.Predicate
	said := o.c.Text + " " + o.c.EvidenceQuote + " " + o.c.Object
	switch kind {
	case events.DeltaNoop:
		return attribute && lex.Object(f.Object) == lex.Object(o.c.Object) || lex.Jaccard(lex.NewSet(f.Text), lex.NewSet(o.c.Text)) >= alike
	case events.DeltaDelete:
		return o.c.Explicit && !o.c.Hedged && (attribute || shares(said, f.Object))
	case events.DeltaUpdate:
		return attribute || shares(said, f.Object) || f.Cardinality == events.One && o.c.Cardinality == events.One
	case events.DeltaAdd:
	}
	return true
}

// shares reports whether two texts have a word in common, in any form of it.
func shares(a, b string) bool {
	terms := lex.Terms(a)
	return slices.ContainsFunc(lex.Terms(b), func(t string) bool { return slices.Contains(terms, t) })
}

// merged checks the text of an UPDATE. Empty stands for the candidate's. A text with
// words that stand in neither place is not taken, and the candidate's is.
func (o open) merged(text string, f events.Fact) (string, bool) {
	text = strings.TrimSpace(text)
	before := lex.NewSet(o.c.Text + " " + o.c.EvidenceQuote + " " + o.c.Object + " " + f.Text)
	if text == "" || !before.Contains(lex.NewSet(text)) {
		text = o.c.Text
	}
	if f.Predicate == o.c.Predicate {
		return text, true
	}
	old, now := lex.MarksOf(f.Text), lex.MarksOf(text)
	return text, within(old.Numbers, now.Numbers) && within(old.Dates, now.Dates) && within(old.Names, now.Names)
}

func within(some, all []string) bool {
	return !slices.ContainsFunc(some, func(s string) bool { return !slices.Contains(all, s) })
}
