// Package e2e holds the scenarios that every shape of Palimpsest must show,
// told through its public interfaces alone: NATS in, HTTP out, the command line
// around them. It runs the real program as a process, and kills it where a
// scenario asks for that.
//
// TestP1… to TestP9… are named after the promises that they hold the program
// to. The tenth, forgetting, has none yet: a scope can be closed, not erased.
package e2e
