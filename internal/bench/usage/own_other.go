//go:build !unix

package usage

import "time"

// Own returns 0: the processor time is unknown on this system.
func Own() time.Duration { return 0 }
