// Package consolidator commits what was decided: the only writer of facts.
//
//	deltas ─▶ AUDIT (the commit) ─▶ memory store, audit log
//	   │
//	   └─▶ candidates, commands (the facts behind the decision changed: decide again)
//
// A batch becomes an effect, the effect is appended to AUDIT behind the one
// that the scope's row knows, and only then applied to the store. A refused
// append means that the row is behind: it is rolled forward from AUDIT and the
// batch judged again. Whatever is delivered twice finds its watermark moved or
// its outcome known. A projector tails AUDIT and rolls any scope forward that
// is behind; a sink copies AUDIT into the audit log, and again what the log had and lost; accesses are coalesced
// into the store's statistics.
//
// It may not decide, extract, call a model or generate anything at random: an
// effect is a function of the batch, its message and the scope's rows.
package consolidator
