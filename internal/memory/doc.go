// Package memory holds the types of the domain that are not messages, and the pure
// rules over those that are: identity, decay, salience, cadence, merging and
// superseding. It does no I/O and reads no clock.
package memory
