package sqlite

import (
	"testing"
	"time"
)

// TestReadsAreBounded: a read has a deadline of its own, and gives its turn back
// when it is done.
func TestReadsAreBounded(t *testing.T) {
	t.Parallel()
	r := &reads{turns: make(chan struct{}, 1)}
	for range 2 {
		ctx, done, err := r.request(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if until, ok := ctx.Deadline(); !ok || time.Until(until) > requestLimit {
			t.Errorf("bounded until %v (%v)", until, ok)
		}
		done()
		if ctx.Err() == nil {
			t.Error("the context of a read that is done goes on")
		}
	}
}
