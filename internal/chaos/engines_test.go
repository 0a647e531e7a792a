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
	err := chaos.Engines{Memory: projects{"shop"}, Named: func(setting string) string { return "redis://h in " + setting }}.Vacant(t.Context())
	taken := (*chaos.TakenError)(nil)
	if !errors.As(err, &taken) || !errors.Is(err, chaos.ErrTaken) || taken.Setting != "memory" || taken.Reason != "redis://h in memory holds memories of project shop" {
		t.Errorf("%v", err)
	}
}
