//go:build linux || darwin || freebsd

package broker

import "syscall"

// Measure asks the system about the file system that holds dir.
func Measure(dir string) (Space, error) {
	var fs syscall.Statfs_t
	if err := syscall.Statfs(dir, &fs); err != nil {
		return Space{}, err
	}
	size := int64(fs.Bsize) //nolint:unconvert // its type differs between systems
	return Space{Free: int64(fs.Bavail) * size, Total: int64(fs.Blocks) * size}, nil
}
