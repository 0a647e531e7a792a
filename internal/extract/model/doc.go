// Package model extracts candidates with a language model: one call for some 20
// turns of a session, with the facts that are already known of these episodes.
//
// The output of a model is no function of its input, however the input is cut into
// calls. The package guarantees this instead. Every candidate is grounded: its
// evidence is verbatim in a user episode of the batch, otherwise it is dropped. A
// batch that is extracted again gets the first reply and so the same candidates (see
// [llm.Cached]), is charged once, and keeps the order of the episodes. The reply
// does not determine scope, source, time of statement or rule: these come from the
// episode that holds the quote, so text of one episode cannot change candidates of
// another scope.
package model
