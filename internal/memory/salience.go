package memory

import (
	"math"
	"time"
)

// DefaultSalienceTau is τ, the time constant of recency.
const DefaultSalienceTau = 24 * time.Hour

// Salience says how much a memory matters now, 0 to 1.
type Salience interface {
	Score(m Moment) float64
}

// Moment is what salience depends on.
type Moment struct {
	LastAccess, Now time.Time
	// Accesses counts reads of the memory.
	Accesses uint64
	// RuleMatches: the rule of the context is the one the memory came of.
	RuleMatches bool
}

// SalienceV1 is the rules-only score exp(−Δt/τ) · (1 − 1/(2+n)) · m, Δt since
// the last access, n accesses, m = 1 where the context's rule matches the
// memory's, else 0.5 (after the recency term of Park et al. 2023).
type SalienceV1 struct {
	// Tau is τ; 0 means DefaultSalienceTau.
	Tau time.Duration
}

// Score implements [Salience]; an access later than now counts as now.
func (s SalienceV1) Score(m Moment) float64 {
	tau := s.Tau
	if tau <= 0 {
		tau = DefaultSalienceTau
	}
	age := max(m.Now.Sub(m.LastAccess), 0)
	match := 0.5
	if m.RuleMatches {
		match = 1
	}
	score := math.Exp(-age.Seconds()/tau.Seconds()) * (1 - 1/(2+float64(m.Accesses))) * match
	return min(max(score, 0), 1)
}
