// Package memory holds the nouns of the domain that do not travel, and the pure
// rules over those that do: identity, decay, salience, cadence, merging and
// superseding. It does no I/O and reads no clock.
package memory
