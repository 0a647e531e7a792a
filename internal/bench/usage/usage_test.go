package usage

import (
	"os"
	"runtime"
	"testing"
)

func TestOwnProcess(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has /proc")
	}
	if Own() <= 0 {
		t.Error("this process has used no processor time")
	}
	if got := ResidentMiB(os.Getpid()); got < 1 || got > 1<<20 {
		t.Errorf("this process has %v MiB", got)
	}
	if got := Load(); got < 0 {
		t.Errorf("load %v", got)
	}
	if got := Processor(os.Getpid()); got > Own() {
		t.Errorf("processor time %v in whole ticks is over %v", got, Own())
	}
	if Processor(-1) != 0 || ResidentMiB(-1) != 0 {
		t.Error("a process that does not exist has used resources")
	}
}
