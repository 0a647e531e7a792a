// Package deterministic is the decider that needs no model: the steps of a
// decision as rules over exact keys and the words of texts. The same candidates
// on the same knowledge give the same deltas, on every attempt and however a
// sequence was cut into batches.
//
// Each step is a file: intent, duplicate, similar, replace (contradiction and
// refinement), negate, and add. The first that settles the candidate ends its
// decision. They read and write a working view: the facts of the store with the
// deltas of the batch so far.
//
// # Time
//
// A candidate yields to later statements: it becomes history (an add
// that is closed already) where one value may hold at a time, and it neither
// ends nor changes a newer fact. Where two times are equal, the order of the
// episodes decides. Among the values of one (subject, predicate) of cardinality
// one at most one is valid at any instant.
//
// # Facts that change too often
//
// Each change of a fact passes the breaker (decide.Breaker). Where it has
// tripped, the candidate changes nothing and is held; see churn.go.
//
// # Repeated statements
//
// Words that made a version of a fact change nothing when they are read again, even if
// the fact has changed or ended since; nor do words from before the end of the fact.
// The same words in a later episode are a new statement.
package deterministic
