package events

import (
	"cmp"
	"slices"
)

// Spent is what a language model charged for one request, or for all of a batch.
type Spent struct {
	// Request identifies the request, so that a message that is handled again
	// charges it once; empty for a sum.
	Request      string `json:"request,omitempty"`
	Model        string `json:"model"`
	Calls        int    `json:"calls"`
	InputTokens  int    `json:"input_tokens"`
	OutputTokens int    `json:"output_tokens"`
	// Dollars is 0 where the model has no prices.
	Dollars float64 `json:"dollars,omitempty"`
}

// Charge adds the requests of more to those of a list, each once, in the order of
// their ids. Of one that both have, the later figures stay.
func Charge(list, more []Spent) []Spent {
	byID := make(map[string]Spent, len(list)+len(more))
	for _, s := range slices.Concat(list, more) {
		byID[s.Request] = s
	}
	return sorted(byID)
}

// SpentByModel sums requests up.
func SpentByModel(list []Spent) []Spent {
	sums := map[string]Spent{}
	for _, s := range list {
		sum := sums[s.Model]
		sums[s.Model] = Spent{
			Model: s.Model, Calls: sum.Calls + s.Calls, InputTokens: sum.InputTokens + s.InputTokens,
			OutputTokens: sum.OutputTokens + s.OutputTokens, Dollars: sum.Dollars + s.Dollars,
		}
	}
	return sorted(sums)
}

func sorted(of map[string]Spent) []Spent {
	var out []Spent
	for _, s := range of {
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b Spent) int { return cmp.Or(cmp.Compare(a.Model, b.Model), cmp.Compare(a.Request, b.Request)) })
	return out
}
