// Package telemetry turns what the parts of Palimpsest report into metrics. It
// holds no globals: a process makes one Metrics and hands it on.
package telemetry
