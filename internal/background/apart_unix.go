//go:build unix

package background

import "syscall"

// apart detaches a process from the terminal and the signals of its parent.
func apart() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
