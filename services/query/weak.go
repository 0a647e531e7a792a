package query

import (
	"context"
	"time"

	"palimpsest/internal/memory"
	"palimpsest/internal/store"
	"palimpsest/pkg/api"
)

// A fact is weak below this confidence, or where it is due for pruning within this
// time.
const (
	weakBelow  = 0.3
	weakWithin = 7 * 24 * time.Hour
)

// maxWeakRead bounds the facts that one page of weak ones looks at; the next page
// goes on behind them.
const maxWeakRead = 20_000

type weakFactsInput struct {
	SelectorParams
	Limit  int    `query:"limit" doc:"1 to 1000; 100 unless given."`
	Cursor string `query:"cursor"`
}

type weakPage struct{ Body api.WeakPage }

// weakFacts lists the facts that are about to be forgotten. Decay has no index but
// that of the pruning, so it reads on until a page is full.
func (s *Service) weakFacts(ctx context.Context, in *weakFactsInput) (*weakPage, error) {
	sel, q, err := s.factQuery(&listFactsInput{SelectorParams: in.SelectorParams, Limit: in.Limit, Cursor: in.Cursor})
	if err != nil {
		return nil, err
	}
	n, now := q.Limit, s.deps.Now()
	q.Limit = maxPage
	out := &weakPage{api.WeakPage{Facts: []api.WeakFact{}}}
	for read := 0; ; {
		facts, err := s.deps.Store.Facts(ctx, sel, q)
		if err != nil {
			return nil, err
		}
		for _, f := range facts {
			read++
			q.Cursor = &store.FactCursor{CreatedAt: f.CreatedAt, ID: f.ID}
			if weak, ok := viewWeak(f, now); ok {
				out.Body.Facts = append(out.Body.Facts, weak)
			}
			if len(out.Body.Facts) == n {
				out.Body.Next = seal(*q.Cursor)
				return out, nil
			}
		}
		if len(facts) < q.Limit {
			return out, nil
		}
		if read >= maxWeakRead {
			out.Body.Next = seal(*q.Cursor)
			return out, nil
		}
	}
}

// maxPage is the most that one read of the store returns.
const maxPage = 1000

func viewWeak(f store.Fact, now time.Time) (api.WeakFact, bool) {
	out := api.WeakFact{Fact: viewFact(f, now)}
	if due, ok := f.Due(); ok {
		out.PrunedAt = &due
	}
	weak := memory.Confidence(f.Strength, f.DecayRate, f.LastAccessed, now) < weakBelow
	return out, weak || f.DueBy(now.Add(weakWithin))
}
