package recovery

import "testing"

func TestIntact(t *testing.T) {
	t.Parallel()
	at := func(held uint64, e Extent) Position {
		return Position{Stream: "EPISODES", Holder: "memory store", Held: held, Extent: e}
	}
	for name, c := range map[string]struct {
		position Position
		want     string
	}{
		"nothing anywhere":      {at(0, Extent{}), ""},
		"a store that is new":   {at(0, Extent{1, 9, 9}), ""},
		"a store that is ahead": {at(10, Extent{1, 9, 9}), "EPISODES ends at message 9, but the memory store has what stood there up to 10"},
		"a stream that is gone": {at(10, Extent{}), "EPISODES is empty, but the memory store has what stood there up to 10"},
		"all dropped":           {at(10, Extent{11, 10, 0}), ""},
		"some dropped":          {at(8, Extent{9, 10, 2}), ""},
		"in step":               {at(9, Extent{1, 9, 9}), ""},
	} {
		got := ""
		if err := Intact(at(0, Extent{}), c.position); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
