package llm

import (
	"context"
	"sync"

	"palimpsest/pkg/events"
)

// Bill collects what the requests under a context cost. A reply from a cache is
// charged as it was when it came: a message that is handled again has the same bill.
type Bill struct {
	mu   sync.Mutex
	sums []events.Spent
}

type billKey struct{}

// Billed returns a context whose requests are put on the bill.
func Billed(ctx context.Context) (context.Context, *Bill) {
	b := &Bill{}
	return context.WithValue(ctx, billKey{}, b), b
}

// Spent is what is on the bill, one entry for each request.
func (b *Bill) Spent() []events.Spent {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.sums
}

// put charges a request, whose figures replace the previous ones.
func put(ctx context.Context, s events.Spent) {
	b, ok := ctx.Value(billKey{}).(*Bill)
	if !ok || s.Calls == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sums = events.Charge(b.sums, []events.Spent{s})
}
