package kernel

import "golang.org/x/sys/cpu"

// Best returns the fastest kernels for this processor.
func Best() *Set {
	if cpu.ARM64.HasASIMD {
		return &Set{Name: "neon", multiply: multiplyNEON, softmax: softmaxNEON, gelu: geluNEON, norm: normNEON}
	}
	return Scalar()
}

//go:noescape
func multiplyNEON(depth int, t *tile, b, bias *float32)

//go:noescape
func softmaxNEON(x []float32)

//go:noescape
func geluNEON(x []float32)

//go:noescape
func normNEON(x, y, gain, bias []float32, epsilon float32)
