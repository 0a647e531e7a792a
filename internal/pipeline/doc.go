// Package pipeline is the worker runtime: the only package that fetches, acks,
// naks, retries, dead-letters and publishes. A service provides stages. Each is a
// function from one typed event to the payloads to publish, and its error decides
// the verdict.
//
// A message passes through these files:
//
//	source ─▶ dispatcher ─▶ worker ─▶ verdict ─▶ broker, ack
//	                                └─────▶ letter
//
// The source fetches no more messages than there are free slots. The dispatcher keeps the
// order of a fact scope. The worker decodes, calls the handler and publishes the
// returned payloads. One pure function judges. A log stage (log*.go) reads a stream
// without a consumer.
package pipeline
