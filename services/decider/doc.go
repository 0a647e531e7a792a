// Package decider decides what candidates change:
//
//	candidates, commands ─▶ deltas
//
// Each candidate passes the write policy and is then reconciled with what is
// known of its scope and with the rest of its batch. What API callers ask for
// comes here too and becomes deltas of its own. A batch goes on even when it is
// empty, because its watermark moves only at the commit.
//
// What would change a fact that changed too often lately is held, the newest
// candidate of each fact: it comes back as a command of the scheduler's once
// there is room, or of a caller's, and is decided anew on what is known then.
//
// The decider only reads: the deltas it returns name the revision of the scope
// they were decided on and what the decision looked at (its footprint), and the
// consolidator sends back what has changed since. It may not write facts,
// publish or read the wall clock.
package decider
