// Package decidetest is the suite that every decider must pass, and a memory of
// one scope to decide upon.
package decidetest
