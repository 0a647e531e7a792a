package cli

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestPace(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		pacer pacer
		at    []time.Duration // when each happened, after noon
		want  time.Duration
	}{
		"as fast as possible": {pacer{}, []time.Duration{0, time.Hour}, 0},
		"as it was":           {pacer{speed: 1}, []time.Duration{0, time.Second, 3 * time.Second}, 3 * time.Second},
		"twice as fast":       {pacer{speed: 2}, []time.Duration{0, time.Second, 3 * time.Second}, 1500 * time.Millisecond},
		"half as fast":        {pacer{speed: .5}, []time.Duration{0, time.Second}, 2 * time.Second},
		"silence shortened":   {pacer{speed: 1, most: time.Minute}, []time.Duration{0, time.Hour, time.Hour + time.Second}, 61 * time.Second},
		"out of order":        {pacer{speed: 1}, []time.Duration{0, 5 * time.Second, time.Second, 6 * time.Second}, 6 * time.Second},
		"very slow":           {pacer{speed: 1e-300, most: time.Second}, []time.Duration{0, time.Hour}, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				for _, at := range c.at {
					if err := c.pacer.wait(t.Context(), noon.Add(at)); err != nil {
						t.Fatal(err)
					}
				}
				if took := time.Since(began); took != c.want {
					t.Errorf("took %s, want %s", took, c.want)
				}
			})
		})
	}
}

// Time that was spent on an event is made up for before the next.
func TestPaceMakesUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, began, noon := pacer{speed: 1}, time.Now(), time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
		for i := range 4 {
			if err := p.wait(t.Context(), noon.Add(time.Duration(i)*time.Second)); err != nil {
				t.Fatal(err)
			}
			if i == 1 {
				<-time.After(1500 * time.Millisecond)
			}
		}
		if took := time.Since(began); took != 3*time.Second {
			t.Errorf("took %s, want 3 s", took)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := p.wait(ctx, noon.Add(time.Hour)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a wait that is given up: %v", err)
		}
	})
}
