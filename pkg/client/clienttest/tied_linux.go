package clienttest

import "syscall"

// tied ends the program with the test's process, however that ends.
func tied() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM} }
