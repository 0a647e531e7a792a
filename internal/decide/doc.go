// Package decide is the contract of deciders, and the write policy that every
// candidate passes before one: how candidates become typed deltas. Deciders are
// sibling folders.
package decide
