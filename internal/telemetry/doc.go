// Package telemetry turns the reports of the parts of Palimpsest into metrics and
// traces. It has no globals: a process makes one Metrics and passes it on.
//
// Backends are timed by wrappers of their contracts ([Metrics.Store] and its
// siblings); neither backends nor services depend on it.
package telemetry
