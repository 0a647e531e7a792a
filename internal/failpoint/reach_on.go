//go:build failpoints

package failpoint

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
)

// armed is the point at which to die, and how many passes are left to it.
var armed struct {
	Point
	left atomic.Int64
}

func init() {
	spec := os.Getenv(Env)
	if spec == "" {
		return
	}
	name, pass, _ := strings.Cut(spec, ":")
	n, err := strconv.ParseInt(pass, 10, 64)
	for _, p := range Points() {
		if p.String() == name && err == nil && n > 0 {
			armed.Point = p
			armed.left.Store(n)
			return
		}
	}
	fmt.Fprintf(os.Stderr, "failpoint: %s=%q is not stage/step:n of a known point\n", Env, spec)
	os.Exit(2)
}

// Reach passes a point. Where that is the armed one, for the last time, the
// process says so on stderr and dies.
func Reach(stage, step string) {
	if stage != armed.Stage || step != armed.Step || armed.left.Add(-1) != 0 {
		return
	}
	fmt.Fprintf(os.Stderr, "failpoint: killed at %s\n", armed.Point)
	if self, err := os.FindProcess(os.Getpid()); err == nil {
		_ = self.Kill()
	}
	select {} // until the signal arrives
}
