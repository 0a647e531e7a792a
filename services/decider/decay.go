package decider

import (
	"fmt"
	"strconv"
	"strings"

	"palimpsest/internal/memory"
	"palimpsest/pkg/events"
)

// maxDecay is the highest rate: a fact is pruned within hours.
const maxDecay = 10

// rates reads [Config.Decay].
func (c Config) rates() (func(events.FactKind) float64, error) {
	all, of := memory.DefaultDecayRate, map[events.FactKind]float64{events.FactSummary: 0}
	for _, entry := range c.Decay {
		kind, value, named := strings.Cut(entry, "=")
		if !named {
			value = entry
		}
		rate, err := strconv.ParseFloat(value, 64)
		switch {
		case err != nil || !(rate >= 0 && rate <= maxDecay):
			return nil, fmt.Errorf("decider: decay: %q is no rate from 0 to %d", value, maxDecay)
		case !named:
			all = rate
		case !events.FactKind(kind).Valid():
			return nil, fmt.Errorf("decider: decay: %q is not a kind of fact", kind)
		default:
			of[events.FactKind(kind)] = rate
		}
	}
	return func(kind events.FactKind) float64 {
		if rate, ok := of[kind]; ok {
			return rate
		}
		return all
	}, nil
}
