package httpserver

import (
	"os"
	"runtime"
)

// spareThreads is how many more threads run Go code than there are processors, in
// a process that answers callers. The runtime looks for network input only where a
// thread has nothing else to run, and at least every 10 ms. While the handlers of
// stages keep a thread on each processor busy, each request waits for that. A thread
// to spare waits for the network, and the system wakes it at once.
const spareThreads = 2

// SpareThreads starts the spare threads. GOMAXPROCS takes precedence, and so does a
// limit of the container on processor time: threads above it would use the time up
// early in each period, and then all of them would stop.
func SpareThreads() {
	if n := withSpare(runtime.GOMAXPROCS(0), runtime.NumCPU(), os.Getenv("GOMAXPROCS")); n > 0 {
		runtime.GOMAXPROCS(n)
	}
}

// withSpare returns the number of threads to set, 0 for no change.
func withSpare(threads, processors int, chosen string) int {
	if chosen != "" || threads != processors {
		return 0
	}
	return processors + spareThreads
}
