// Package model decides on candidates with a language model: one call for up to 8
// candidates that the deterministic steps leave open, with the facts that are known
// around each of them.
//
// The model advises, and the deterministic decider decides. An operation is checked
// before it becomes advice: its target must be among the facts that were shown for
// its candidate, under an alias, about the same subject; a text must consist of
// words of the statement and the fact; an UPDATE must not lose a number, date or
// name of another attribute. The steps decide on the other candidates, and on all of
// them if the reply is unreadable or a refusal. The model never determines times,
// order, the breaker or the sources.
package model
