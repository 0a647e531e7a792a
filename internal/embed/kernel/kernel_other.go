//go:build !amd64 && !arm64

package kernel

// Best returns the fastest kernels for this processor.
func Best() *Set { return Scalar() }
