package events

import (
	"encoding/json"
	"math"
	"time"
)

// Timestamp is an instant that reads RFC 3339 text or unix seconds (integer or
// fraction) from JSON and writes RFC 3339 with its UTC offset kept.
type Timestamp struct{ time.Time }

// earliest and latest bound what a publisher may claim: years 1 to 9999, the
// range of RFC 3339.
var (
	earliest = time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC)
	latest   = time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)
)

// UnmarshalJSON implements [json.Unmarshaler].
func (t *Timestamp) UnmarshalJSON(raw []byte) error {
	if string(raw) == "null" {
		return nil
	}
	var seconds float64
	if json.Unmarshal(raw, &seconds) == nil {
		return t.setUnix(seconds)
	}
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return invalid("timestamp", "must be RFC 3339 text or unix seconds")
	}
	var at time.Time // its own reader is strict where time.Parse is not
	if err := at.UnmarshalText([]byte(text)); err != nil {
		return invalid("timestamp", "%q is not RFC 3339", clip(text))
	}
	return t.set(at)
}

func (t *Timestamp) setUnix(seconds float64) error {
	if seconds < float64(earliest.Unix()) || seconds > float64(latest.Unix()) {
		return invalid("timestamp", "%g is outside the years 1 to 9999", seconds)
	}
	whole, frac := math.Modf(seconds)
	return t.set(time.Unix(int64(whole), int64(math.Round(frac*1e6))*1e3).UTC())
}

func (t *Timestamp) set(at time.Time) error {
	if at.Before(earliest) || at.After(latest) {
		return invalid("timestamp", "is outside the years 1 to 9999")
	}
	t.Time = at
	return nil
}

// MarshalJSON implements [json.Marshaler]. An offset that RFC 3339 cannot write,
// because it is no whole number of minutes, gives way to UTC.
func (t Timestamp) MarshalJSON() ([]byte, error) {
	if t.Before(earliest) || t.After(latest) {
		return nil, invalid("timestamp", "is outside the years 1 to 9999")
	}
	if _, offset := t.Zone(); offset%60 != 0 || t.Year() < 1 || t.Year() > 9999 {
		t.Time = t.UTC()
	}
	return json.Marshal(t.Format(time.RFC3339Nano))
}
