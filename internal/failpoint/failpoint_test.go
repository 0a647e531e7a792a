package failpoint

import (
	"os/exec"
	"strings"
	"testing"
)

// TestTheDefaultBuildIsEmpty: nothing of the armed half is compiled, and a call
// of Reach is inlined to nothing.
func TestTheDefaultBuildIsEmpty(t *testing.T) {
	t.Parallel()
	list := func(args ...string) string {
		out, err := exec.CommandContext(t.Context(), "go", append([]string{"list"}, append(args, ".")...)...).Output()
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	const files = "{{.GoFiles}} {{.Imports}}"
	if got := list("-f", files); strings.Contains(got, "reach_on.go") || strings.Contains(got, "os") {
		t.Errorf("the default build has %s", got)
	}
	if got := list("-tags", "failpoints", "-f", files); !strings.Contains(got, "reach_on.go") || strings.Contains(got, "reach_off.go") {
		t.Errorf("the armed build has %s", got)
	}
	out, err := exec.CommandContext(t.Context(), "go", "build", "-gcflags=-m", ".").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "can inline Reach") {
		t.Errorf("%v: the compiler says %s", err, out)
	}
}

func TestPointsAreDistinct(t *testing.T) {
	t.Parallel()
	seen := map[Point]bool{}
	for _, p := range Points() {
		if seen[p] || strings.ContainsAny(p.String(), ":= ") || p.Stage == "" || p.Step == "" {
			t.Errorf("%s", p)
		}
		seen[p] = true
	}
}
