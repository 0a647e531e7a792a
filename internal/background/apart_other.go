//go:build !unix

package background

import "syscall"

// apart leaves a process in the group of its parent.
func apart() *syscall.SysProcAttr { return nil }
