// Package bench measures the cost of Palimpsest, as ratios taken in one run: the
// product and its limit (the bare engine doing the same work) take turns on the same
// machine, so that other load affects both. The report also has the absolute times.
package bench
