// Package grammar knows the words of one language: it cuts a text into tokens, sentences
// and clauses, marks the clauses that state nothing (questions, suppositions, what others
// say), finds names, dates and amounts of money, and writes sentences whose parts stand
// in another order as plain ones.
//
// The words are data, a [Lexicon], which [Lexicon.Compile] makes a [Grammar] of. The
// package knows no rules and no facts.
package grammar
