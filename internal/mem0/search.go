package mem0

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"palimpsest/pkg/api"
)

// search answers with the memories that match a question, best first.
func search(c *call) (any, error) {
	_, all, err := c.found(10)
	return map[string]any{"results": all}, err
}

// searchBare is the search of older clients: an array unless they ask otherwise.
func searchBare(c *call) (any, error) {
	b, all, err := c.found(10)
	if b.OutputFormat == "v1.1" {
		return map[string]any{"results": all}, err
	}
	return all, err
}

// searchLimited is the search of the compat family.
func searchLimited(c *call) (any, error) {
	b, all, err := c.found(100)
	return results(b, all), err
}

// found reads a search and returns the memories that match, at most usual unless it
// names a limit.
func (c *call) found(usual int) (b readBody, all []any, err error) {
	if b, err = c.listBody(); err != nil {
		return b, nil, err
	}
	if strings.TrimSpace(b.Query) == "" {
		return b, nil, invalid("query: is required")
	}
	all, err = c.matching(b, usual)
	return b, all, err
}

func (c *call) matching(b readBody, usual int) ([]any, error) {
	cond, err := b.conditions()
	if err != nil {
		return nil, err
	}
	most := cmp.Or(b.TopK, b.Limit, usual)
	if most < 1 || most > maxLimit {
		return nil, invalid("top_k: %d is outside 1 to %d", most, maxLimit)
	}
	at, err := reference(b.ReferenceDate)
	if err != nil {
		return nil, err
	}
	q := api.Search{Selector: cond.selector(), Text: b.Query, Types: []string{"fact"}, Limit: most, Now: at, Filters: cond.filters(), Explain: true}
	got, err := c.Search(c.Context(), q)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	expired := func(h api.Hit) bool { return viewMemory(*h.Fact).expired(now) }
	if !b.ShowExpired && slices.ContainsFunc(got.Results, expired) {
		// Few memories expire, so that only a search that found one pays for the filter.
		cond.unexpired(now)
		q.Filters = cond.filters()
		if got, err = c.Search(c.Context(), q); err != nil {
			return nil, err
		}
	}
	all := []any{}
	for _, hit := range got.Results {
		if score := scoreOf(hit); score >= b.Threshold {
			m := cond.seen(*hit.Fact)
			m.Score = &score
			all = append(all, m.fields(b.Fields))
		}
	}
	return all, nil
}

// scoreOf is the similarity of a hit or its score, whichever is greater: mem0's
// clients have thresholds for similarities. A hit whose vector is pending has its
// score alone.
func scoreOf(hit api.Hit) float64 {
	return min(1, max(hit.Score, hit.Channels["vector"].Score))
}

// reference reads the date that words such as yesterday count from.
func reference(raw json.RawMessage) (*api.Instant, error) {
	var v any
	if len(raw) > 0 {
		_ = json.Unmarshal(raw, &v) // it is a part of a body that was decoded
	}
	if v == nil {
		return nil, nil //nolint:nilnil // no date is no error
	}
	at, ok := instant(v)
	if !ok {
		return nil, invalid("reference_date is neither a date nor unix seconds")
	}
	return &api.Instant{Time: at}, nil
}
