package recovery

import (
	"testing"

	"palimpsest/internal/pipeline"
)

func TestIntact(t *testing.T) {
	t.Parallel()
	at := func(held uint64, e pipeline.Extent) Position {
		return Position{Stream: "EPISODES", Holder: "memory store", Held: held, Extent: e}
	}
	for name, c := range map[string]struct {
		position Position
		want     string
	}{
		"nothing anywhere":      {at(0, pipeline.Extent{}), ""},
		"a store that is new":   {at(0, pipeline.Extent{First: 1, Last: 9, Messages: 9}), ""},
		"a store that is ahead": {at(10, pipeline.Extent{First: 1, Last: 9, Messages: 9}), "EPISODES ends at message 9, but the memory store has what stood there up to 10"},
		"a stream that is gone": {at(10, pipeline.Extent{}), "EPISODES is empty, but the memory store has what stood there up to 10"},
		"all dropped":           {at(10, pipeline.Extent{First: 11, Last: 10, Messages: 0}), ""},
		"some dropped":          {at(8, pipeline.Extent{First: 9, Last: 10, Messages: 2}), ""},
		"in step":               {at(9, pipeline.Extent{First: 1, Last: 9, Messages: 9}), ""},
	} {
		got := ""
		if err := intact([]Position{at(0, pipeline.Extent{}), c.position}); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
