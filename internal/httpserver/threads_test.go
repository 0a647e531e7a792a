package httpserver

import "testing"

func TestSpareThreads(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name                string
		threads, processors int
		chosen              string
		want                int
	}{
		{"two processors", 2, 2, "", 4},
		{"one processor", 1, 1, "", 3},
		{"a container with a limit", 2, 16, "", 0},
		{"GOMAXPROCS is set", 2, 2, "2", 0},
		{"set before", 4, 2, "", 0},
	} {
		if got := withSpare(c.threads, c.processors, c.chosen); got != c.want {
			t.Errorf("%s: %d threads, want %d", c.name, got, c.want)
		}
	}
}
