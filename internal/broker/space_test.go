package broker

import (
	"testing"

	"pgregory.net/rapid"
)

func TestReserve(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ total, want int64 }{
		{1 << 40, 512 << 20},
		{10 << 30, 512 << 20},
		{5 << 30, 512 << 20},
		{1 << 30, 1 << 30 / 10},
		{0, 0},
	} {
		if got := (Space{Total: tc.total}).reserve(); got != tc.want {
			t.Errorf("of %d: %d, want %d", tc.total, got, tc.want)
		}
	}
}

func TestLimitLeavesTheReserve(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := Space{Total: rapid.Int64Range(0, 1<<50).Draw(t, "total")}
		used := rapid.Int64Range(0, s.Total).Draw(t, "used")
		s.Free = rapid.Int64Range(0, s.Total-used).Draw(t, "free")
		limit := s.limit(used)
		if limit < 1 || limit > max(1, s.Total) {
			t.Fatalf("limit %d of %+v", limit, s)
		}
		if growth := limit - used; growth > max(1, s.Free-s.reserve()) {
			t.Fatalf("may grow by %d with %+v", growth, s)
		}
		if s.low() && limit > max(1, used) {
			t.Fatalf("low on space, yet may grow from %d to %d", used, limit)
		}
		if s.starved() && !s.low() {
			t.Fatalf("starved, yet not low: %+v", s)
		}
	})
}
