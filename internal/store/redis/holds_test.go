package redis

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestNoHolds: a scope without holds tells so in one command, and runs no script.
func TestNoHolds(t *testing.T) {
	t.Parallel()
	s := openNew(t, countedConfig(t))
	sent := &counts{sent: map[string]int{}}
	addHook(s, sent)
	list, err := s.Holds(t.Context(), ana.Fact())
	if err != nil || len(list) != 0 {
		t.Fatal(list, err)
	}
	if diff := cmp.Diff(map[string]int{"ZRANGE": 1}, sent.now()); diff != "" {
		t.Errorf("commands (-want +got):\n%s", diff)
	}
}
