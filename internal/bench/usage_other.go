//go:build !unix

package bench

import "time"

// ownTime is unknown on this system.
func ownTime() time.Duration { return 0 }
