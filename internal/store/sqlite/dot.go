package sqlite

import "palimpsest/internal/embed/kernel"

var kernels = kernel.Best()

// dot is the inner product of two vectors of one length.
func dot(a, b []float32) float32 { return kernels.Dot(a, b) }
