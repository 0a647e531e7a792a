// Package recovery builds a memory store anew from the streams, and compares
// store, streams and audit log. It names no backend: callers pass the
// stores and streams.
package recovery
