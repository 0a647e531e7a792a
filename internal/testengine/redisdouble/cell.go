package redisdouble

import (
	"cmp"
	"math"
)

// cell is a value in a row of an answer.
type cell struct {
	kind   cellKind
	number float64
	text   string
}

type cellKind int

const (
	missing cellKind = iota
	number
	text
)

func numeric(x float64) cell { return cell{kind: number, number: x} }
func textual(s string) cell  { return cell{kind: text, text: s} }

func (c cell) String() string {
	if c.kind == number {
		return numberText(c.number)
	}
	return c.text
}

// compare orders cells of one kind; missing cells come last in any direction.
func (c cell) compare(o cell, descending bool) int {
	if c.kind == missing || o.kind == missing {
		return cmp.Compare(o.kind, c.kind)
	}
	n := cmp.Or(cmp.Compare(c.number, o.number), cmp.Compare(c.text, o.text))
	if descending {
		return -n
	}
	return n
}

// cell is a field of a document as rows show it: numbers as the index has them,
// all else as it was written.
func (ix *index) cell(d *document, name string) (c cell, ok bool) {
	if f := ix.byName[name]; f != nil && f.kind == numericField {
		x := d.numbers[f.column]
		if math.IsNaN(x) {
			return cell{}, false
		}
		return numeric(x), true
	}
	s, ok := d.hash[name]
	if !ok {
		return cell{}, false
	}
	return textual(s), true
}
