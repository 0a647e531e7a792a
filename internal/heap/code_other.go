//go:build !linux

package heap

// unmapCode does nothing: the system is not asked.
func unmapCode() {}
