//go:build !unix

package app

import "syscall"

// apart leaves a process in the group of its parent.
func apart() *syscall.SysProcAttr { return nil }
