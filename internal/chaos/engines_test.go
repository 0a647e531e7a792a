package chaos_test

import (
	"context"
	"errors"
	"testing"

	"palimpsest/internal/chaos"
)

// projects is a memory store of which only its projects are known.
type projects []string

func (p projects) Projects(context.Context) ([]string, error) { return p, nil }

func TestVacantRefusesMemories(t *testing.T) {
	t.Parallel()
	err := chaos.Engines{Memory: projects{"shop"}}.Vacant(t.Context())
	taken := (*chaos.TakenError)(nil)
	if !errors.As(err, &taken) || !errors.Is(err, chaos.ErrTaken) || taken.Setting != "memory" || taken.Reason != "holds memories of project shop" {
		t.Errorf("%v", err)
	}
}
