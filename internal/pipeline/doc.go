// Package pipeline is the worker runtime: the only room that fetches, acks,
// naks, retries, dead-letters and publishes. A service hands it stages; each is
// a function from one typed event to the payloads that follow, and the error
// it returns is the verdict.
package pipeline
