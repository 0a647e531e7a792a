package e2e

import (
	"os/exec"
	"syscall"
)

// tie lets a process end with the tests, however they end.
func tie(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
