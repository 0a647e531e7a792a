package failpoint

// Env is the variable that arms a point. It has no prefix of Palimpsest's: those
// are settings, and a setting that the default build lacks would be refused.
const Env = "FAILPOINT"

// The steps of every stage that reads a stream, in the order of one message.
const (
	Fetched   = "fetched"   // judged fit for the handler, which has not run
	Handled   = "handled"   // by the handler; nothing that follows is published
	Published = "published" // one of the messages that follow
	Acked     = "acked"     // and the broker said so; of a log: its cursor is written
	Buried    = "buried"    // the dead letter is published, the message not ended
	Replaced  = "replaced"  // a stand-in is published too
	Ended     = "ended"     // the buried message is
)

// The steps within a handler, whose work is more than one write.
const (
	Embedded = "embedded" // vectors are stored
	Claimed  = "claimed"  // the claim row is written, the tick not published
	Appended = "appended" // the effect is in AUDIT, not in the store
	Applied  = "applied"  // it is in the store; nothing is announced
)

// The steps of an erasure, in their order.
const (
	Asked     = "asked"     // the job is on disk
	Copied    = "copied"    // the streams are copied, the old ones in place
	Removed   = "removed"   // the old ones are gone, the copies not in place; of a broker of others: one message is
	Streams   = "streams"   // the streams hold nothing
	Memory    = "memory"    // nor does the memory store
	Log       = "log"       // nor does the audit log
	Announced = "announced" // AUDIT has its record
	Scanned   = "scanned"   // all places were scanned; there is no receipt
	Receipt   = "receipt"   // there is
)

// The stages whose name is not that of a consumer or clock.
const (
	Query        = "query"
	Ingest       = "ingest" // all partitions
	Scheduler    = "scheduler"
	Consolidator = "consolidator"
	Erasure      = "erasure"
)

// Point is a step of a stage.
type Point struct{ Stage, Step string }

// String returns "stage/step".
func (p Point) String() string { return p.Stage + "/" + p.Step }

// Points lists every point there is, stages in the order in which data meets them. Stages that are not services' are named after their consumer or clock.
func Points() []Point {
	var out []Point
	add := func(stage string, steps ...string) {
		for _, step := range steps {
			out = append(out, Point{stage, step})
		}
	}
	add(Query, Published)
	add(Ingest, Fetched, Handled, Published, Acked, Buried, Embedded)
	add("scheduler-stored", Fetched, Handled, Published, Acked)
	add("scheduler-audit", Fetched, Handled, Published, Acked)
	add("scheduler-sweep", Handled, Published)
	add(Scheduler, Claimed)
	add("extractor-ticks-rules", Fetched, Handled, Published, Acked, Buried, Replaced, Ended)
	add("decider-candidates-rules", Fetched, Handled, Published, Acked)
	add("decider-commands", Fetched, Handled, Published, Acked)
	add("consolidator-deltas-rules", Fetched, Handled, Published, Acked)
	add(Consolidator, Appended, Applied)
	add("consolidator-projector", Fetched, Handled, Acked)
	add("consolidator-auditlog", Fetched, Handled, Acked)
	add("consolidator-access", Fetched, Handled, Acked)
	add(Erasure, Asked, Copied, Removed, Streams, Memory, Log, Announced, Scanned, Receipt)
	return out
}
