package decidetest

import (
	"testing"

	"palimpsest/internal/decide"
)

// RunAll runs the behaviour table and the laws of deciding against deciders
// that open returns.
func RunAll(t *testing.T, open func() decide.Decider) {
	t.Helper()
	for _, group := range []struct {
		name string
		rows []row
	}{{"behaviour", behaviour()}, {"steps", steps()}, {"moves", moves()}, {"time", times()}, {"intent", intents()}, {"ends", illFormed()}} {
		t.Run(group.name, func(t *testing.T) {
			t.Parallel()
			for _, r := range group.rows {
				t.Run(r.name, func(t *testing.T) {
					t.Parallel()
					r.run(t, newScene(t, open()))
				})
			}
		})
	}
	t.Run("churn", func(t *testing.T) {
		t.Parallel()
		runChurn(t, open)
	})
	t.Run("laws", func(t *testing.T) {
		t.Parallel()
		runLaws(t, open)
	})
}

// row is one named behaviour.
type row struct {
	name string
	run  func(t *testing.T, s *scene)
}
