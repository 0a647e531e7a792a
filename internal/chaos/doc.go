// Package chaos says known things to a real Palimpsest, kills it (-9) again and
// again while it listens, and then holds what is kept against what was
// acknowledged.
//
// A [Plan] says of which processes that Palimpsest consists: one that has
// everything, or several on a broker and engines of others. A [Workload] is drawn
// from a seed, with the answers that must come of it. [Run] publishes it as
// ordinary NATS clients do and leaves a [Record] of what was acknowledged. [Judge]
// reads what the stopped processes left, and what it answers is a function of that
// [Evidence] and the record alone.
package chaos
