// Package consolidator commits deltas. It is the only writer of facts.
//
//	deltas ─▶ AUDIT (the commit) ─▶ memory store, audit log
//	   │
//	   └─▶ candidates, commands (the facts behind the decision changed: decide again)
//
// A batch becomes an effect, the effect is appended to AUDIT after the last one
// of the scope's row, and only then applied to the store. A refused append means
// that the row is behind: it is rolled forward from AUDIT and the batch judged
// again. A redelivered batch finds its watermark moved or its outcome known. A
// projector tails AUDIT and rolls forward any scope that is behind. A sink copies
// AUDIT into the audit log, and copies again the effects that the log lost. Accesses
// are coalesced into the store's statistics.
//
// It may not decide, extract, call a model or generate anything at random: an
// effect is a function of the batch, its message and the scope's rows.
package consolidator
