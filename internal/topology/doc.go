// Package topology declares the streams, durable consumers and permissions of Palimpsest
// as data, and applies them to a broker or compares them with it.
package topology

import "errors"

// ErrIncompatible means that the broker's streams and consumers are not those
// declared.
var ErrIncompatible = errors.New("broker: incompatible topology")
