package e2e

import "testing"

// shapes are the ways to run Palimpsest.
var shapes = []struct {
	name  string
	start func(t *testing.T) *instance
}{
	{"embedded", func(t *testing.T) *instance { t.Helper(); return start(t, t.TempDir()) }},
	{"six processes", func(t *testing.T) *instance { t.Helper(); return startCluster(t, 1).instance }},
}

// inEveryShape runs a scenario against each.
func inEveryShape(t *testing.T, run func(t *testing.T, i *instance)) {
	t.Helper()
	for _, s := range shapes {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			run(t, s.start(t))
		})
	}
}
