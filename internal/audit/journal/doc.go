// Package journal is the AUDIT stream as a journal: the ordered list of effects of
// each fact scope, to which a commit appends and from which everybody reads.
package journal
