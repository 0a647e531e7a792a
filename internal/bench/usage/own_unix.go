//go:build unix

package usage

import (
	"syscall"
	"time"
)

// Own returns the processor time of this process.
func Own() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
