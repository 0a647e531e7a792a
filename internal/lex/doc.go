// Package lex reads texts as words: Unicode words, stems and index terms, token
// sets and their similarity, and the marks (numbers, dates, names, negations)
// by which two similar texts may still differ.
//
// The store's text index, the local embedder and the decider share it, so that they
// agree on which words are the same. It is pure: no I/O, no state, no clock.
package lex
