package mem0

import (
	"cmp"
	"encoding/json"
	"time"

	"palimpsest/pkg/api"
)

// search answers with the memories that match a question, best first.
func search(c *call) (any, error) {
	b, err := c.listBody()
	if err != nil {
		return nil, err
	}
	all, err := c.found(b, 10)
	if err != nil {
		return nil, err
	}
	return map[string]any{"results": all}, nil
}

// searchBare is the search of older clients: an array unless they ask otherwise.
func searchBare(c *call) (any, error) {
	b, err := c.listBody()
	if err != nil {
		return nil, err
	}
	all, err := c.found(b, 10)
	if err != nil {
		return nil, err
	}
	if b.OutputFormat == "v1.1" {
		return map[string]any{"results": all}, nil
	}
	return all, nil
}

// searchLimited is the search of the compat family.
func searchLimited(c *call) (any, error) {
	b, err := c.listBody()
	if err != nil {
		return nil, err
	}
	all, err := c.found(b, 100)
	if err != nil {
		return nil, err
	}
	return results(b, all), nil
}

func (c *call) found(b readBody, usual int) ([]any, error) {
	f, err := b.conditions(time.Now())
	if err != nil {
		return nil, err
	}
	most := cmp.Or(b.TopK, b.Limit, usual)
	if most < 1 || most > maxLimit {
		return nil, invalid("top_k: %d is outside 1 to %d", most, maxLimit)
	}
	now, err := reference(b.ReferenceDate)
	if err != nil {
		return nil, err
	}
	q := api.Search{Selector: f.selector(), Text: b.Query, Types: []string{"fact"}, Limit: most, Now: now}
	for {
		got, err := c.Search(c.Context(), q)
		if err != nil {
			return nil, err
		}
		all := b.passing(f, got.Results)
		// Conditions are compared after the search. Where they leave too few, it
		// returns all that it may.
		if len(all) >= most || len(got.Results) < q.Limit || q.Limit == maxLimit {
			return all[:min(most, len(all))], nil
		}
		q.Limit = maxLimit
	}
}

// passing returns the hits that pass the filter and the threshold.
func (b *readBody) passing(f *filter, hits []api.Hit) []any {
	all := []any{}
	for _, hit := range hits {
		if m := f.seen(*hit.Fact); f.matches(&m) && hit.Score >= b.Threshold {
			m.Score = &hit.Score
			all = append(all, m.fields(b.Fields))
		}
	}
	return all
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
