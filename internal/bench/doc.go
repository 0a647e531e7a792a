// Package bench measures the cost of Palimpsest, as ratios taken in one run: the
// product and its limit (the bare engine doing the same work) take turns on the same
// machine, so that other load affects both. The report also has the absolute times.
//
// The package imports the drivers of the bare engines itself: a limit measured
// through packages of Palimpsest would be no limit.
package bench
