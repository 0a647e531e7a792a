package clickhouse

import (
	"encoding/json"
	"fmt"
	"time"
)

// instant is one that a DateTime64(9) holds.
type instant = time.Time

// The column counts nanoseconds of years from 1900 that fit an int64. Beyond
// them the driver would wrap around, silently.
var (
	earliest = time.Date(1900, 1, 1, 0, 0, 0, 0, time.UTC)
	latest   = time.Date(2261, 12, 31, 23, 59, 59, 0, time.UTC)
)

// bounded is the instant of the column's range that is nearest.
func bounded(t time.Time) instant {
	switch {
	case t.Before(earliest):
		return earliest
	case t.After(latest):
		return latest
	}
	return t.UTC()
}

// known is nil, for NULL, where the column cannot say it.
func known(t time.Time) *instant {
	if b := bounded(t); b.Equal(t) {
		return &b
	}
	return nil
}

// decode is a value out of JSON; nil for the empty string.
func decode[T any](text string) (*T, error) {
	if text == "" {
		return nil, nil
	}
	v := new(T)
	if err := json.Unmarshal([]byte(text), v); err != nil {
		return nil, fmt.Errorf("decode %T: %w", *v, err)
	}
	return v, nil
}
