// Package decidetest is the suite that every decider must pass, and a memory of
// one scope for its tests.
package decidetest
