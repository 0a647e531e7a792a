// Package journal is the AUDIT stream as a journal: the ordered list of effects of
// each fact scope. A commit appends to it; the other packages read it.
package journal
