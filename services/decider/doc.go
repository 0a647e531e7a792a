// Package decider decides what candidates change:
//
//	candidates, commands ─▶ deltas
//
// Each candidate passes the write policy and is then reconciled with the facts of
// its scope and with the rest of its batch. Commands of API callers become deltas
// too. An empty batch is committed too, because its watermark moves only at
// the commit.
//
// A candidate that would change a fact that changed too often recently is held; only
// the newest one of each fact is kept. The scheduler or a caller releases it by a
// command, and it is decided again on the facts of that time.
//
// The decider only reads. Its deltas carry the revision of the scope that they were
// decided on and the rows that the decision used (its footprint). The consolidator
// sends a batch back if any of them changed since. The decider may not write facts,
// publish or read the wall clock.
package decider
