// Package telemetry turns what the parts of Palimpsest report into metrics and
// traces. It holds no globals: a process makes one Metrics and hands it on.
//
// Backends are timed by wrapping their contracts ([Metrics.Store] and its
// siblings), so that neither they nor the services know of it.
package telemetry
