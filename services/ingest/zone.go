package ingest

import (
	"fmt"
	"strings"
	"time"
)

// maxOffset is the largest distance from UTC that RFC 3339 can write.
const maxOffset = 24 * time.Hour

// offsetLayouts are the spellings of a UTC offset.
var offsetLayouts = [...]string{"Z07:00", "-07:00", "-0700", "-07"}

// parseZone reads an IANA zone ("Europe/Berlin") or a UTC offset ("+02:00",
// "-0530", "UTC+2", "Z").
func parseZone(name string) (*time.Location, error) {
	tz := strings.TrimSpace(name)
	if loc, ok := parseOffset(tz); ok {
		return loc, nil
	}
	// "Local" is the machine's own zone, which no publisher can mean.
	if tz != "Local" && len(tz) <= 64 {
		if loc, err := time.LoadLocation(tz); err == nil {
			return loc, nil
		}
	}
	return nil, fmt.Errorf("metadata.tz: %.64q is neither an IANA time zone nor a UTC offset", name)
}

func parseOffset(tz string) (*time.Location, bool) {
	tz = strings.TrimPrefix(strings.TrimPrefix(tz, "UTC"), "GMT")
	if tz == "" {
		return time.UTC, true
	}
	if len(tz) == 2 && (tz[0] == '+' || tz[0] == '-') {
		tz = tz[:1] + "0" + tz[1:]
	}
	for _, layout := range offsetLayouts {
		at, err := time.Parse(layout, tz)
		if err != nil {
			continue
		}
		_, seconds := at.Zone()
		if offset := time.Duration(seconds) * time.Second; offset <= -maxOffset || offset >= maxOffset {
			return nil, false
		}
		if seconds == 0 {
			return time.UTC, true
		}
		return time.FixedZone("", seconds), true
	}
	return nil, false
}
