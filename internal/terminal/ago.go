package terminal

import (
	"time"

	"github.com/dustin/go-humanize"
)

// Ago returns how long before or after now an instant lies, in the largest unit
// that fits, such as "3 minutes ago"; "-" for the zero time.
func Ago(at, now time.Time) string {
	if at.IsZero() {
		return "-"
	}
	return humanize.RelTime(at, now, "ago", "from now")
}
