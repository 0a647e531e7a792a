// Package model extracts candidates with a language model: one call for some 20
// turns of a session, with the facts that are already known of these episodes.
//
// A model is no function of its input however that is cut. What holds instead:
// every candidate is grounded, as its evidence stands verbatim in a user episode of
// the batch, and one that is not is dropped; a batch that is extracted again gets
// the reply of the first time and so the same candidates (see [llm.Cached]), is
// charged once, and keeps the order of the episodes. The reply decides nothing
// about scope, source, time of statement and rule: these come from the episode that
// holds the quote, so text of one episode cannot change candidates of another scope.
package model
