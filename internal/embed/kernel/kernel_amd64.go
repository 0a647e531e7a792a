package kernel

import "golang.org/x/sys/cpu"

// Best returns the fastest kernels for this processor.
func Best() *Set {
	if cpu.X86.HasAVX2 && cpu.X86.HasFMA {
		return &Set{Name: "avx2", multiply: multiplyAVX2, dot: dotAVX2, softmax: softmaxAVX2, gelu: geluAVX2, norm: normAVX2}
	}
	return Scalar()
}

//go:noescape
func multiplyAVX2(depth int, t *tile, b, bias *float32)

//go:noescape
func softmaxAVX2(x []float32)

//go:noescape
func geluAVX2(x []float32)

//go:noescape
func normAVX2(x, y, gain, bias []float32, epsilon float32)

//go:noescape
func dotAVX2(n int, a, b *float32) float32
