package deterministic_test

import (
	"testing"

	"palimpsest/internal/decide"
	"palimpsest/internal/decide/decidetest"
	"palimpsest/internal/decide/deterministic"
)

func TestDecider(t *testing.T) {
	t.Parallel()
	decidetest.RunAll(t, func() decide.Decider { return deterministic.New() })
}
