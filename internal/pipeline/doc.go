// Package pipeline is the worker runtime: the only room that fetches, acks,
// naks, retries, dead-letters and publishes. A service hands it stages; each is
// a function from one typed event to the payloads that follow, and the error
// it returns is the verdict.
//
// A message passes through in the order of the files:
//
//	source ─▶ (gate) ─▶ lanes ─▶ worker ─▶ verdict ─▶ broker, ack
//	                                          └─────▶ letter
//
// The source fetches no more than there is room for; the gate restores stream
// order after a pinned consumer changed hands; lanes keep the order of a fact
// scope; the worker decodes, calls the handler and publishes what follows; one
// pure function judges. A batch stage takes the same way without lanes.
package pipeline
