// Package topology declares the streams and durable consumers of Palimpsest as
// data: with it a broker is set up, compared and guarded.
package topology

import "errors"

// ErrIncompatible means that the broker's streams and consumers are not those
// declared.
var ErrIncompatible = errors.New("broker: incompatible topology")
