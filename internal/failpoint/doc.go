// Package failpoint names every step of the pipeline at which its process may
// die, and lets a test choose one.
//
// In the default build [Reach] is empty and inlined away. Built with the tag
// "failpoints" it reads the environment variable FAILPOINT, "stage/step:n", and
// kills its own process with SIGKILL when that point is passed for the n-th time
// (from 1): no deferred function runs and nothing is flushed, as in a power cut
// of the process.
package failpoint
