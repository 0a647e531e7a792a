//go:build !linux

package clienttest

import "syscall"

func tied() *syscall.SysProcAttr { return nil }
