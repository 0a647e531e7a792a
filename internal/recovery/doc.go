// Package recovery rebuilds a memory store from the streams, repairs a running one, and
// compares store, streams and audit log. It names no backend: callers pass the
// stores and streams.
package recovery
