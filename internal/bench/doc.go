// Package bench measures what Palimpsest costs, as ratios taken in one run: a
// thing and its own limit (the bare engine doing the same work) take turns on
// the same machine, so that what else the machine does weighs on both. Bare
// times stand beside the ratios to read them by.
//
// It holds the bare engines itself, which is why drivers stand in this room:
// a limit measured through our own rooms would be no limit.
package bench
