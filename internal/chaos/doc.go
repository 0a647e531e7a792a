// Package chaos says known things to a real Palimpsest, kills it (-9) again and
// again while it listens, and then holds what is kept against what was
// acknowledged.
//
// A [Workload] is drawn from a seed, with the answers that must come of it. [Run]
// publishes it as ordinary NATS clients do and leaves a [Record] of what was
// acknowledged. [Judge] reads the directory of the stopped process, and what it
// answers is a function of that directory and the record alone.
package chaos
