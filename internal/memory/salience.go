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
	// Relevance is the cosine of query and memory, and Importance is 0 to 1; only
	// versions 2 and 3 use them.
	Relevance, Importance float64
	// Text is the memory's, for a model of importance.
	Text string
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
	match := 0.5
	if m.RuleMatches {
		match = 1
	}
	return unit(m.recency(s.Tau) * (1 - 1/(2+float64(m.Accesses))) * match)
}

// recency is exp(−Δt/τ).
func (m Moment) recency(tau time.Duration) float64 {
	if tau <= 0 {
		tau = DefaultSalienceTau
	}
	age := max(m.Now.Sub(m.LastAccess), 0)
	return math.Exp(-age.Seconds() / tau.Seconds())
}

// unit bounds a score to 0 to 1.
func unit(score float64) float64 { return min(max(score, 0), 1) }

// The weights of versions 2 and 3 (Park et al. 2023).
const (
	DefaultSalienceRecency    = 0.4
	DefaultSalienceRelevance  = 0.4
	DefaultSalienceImportance = 0.2
)

// SalienceV2 is the weighted sum
// w_recency · exp(−Δt/τ) + w_relevance · cos(q, m) + w_importance · imp(m).
type SalienceV2 struct {
	// Tau is τ; 0 means DefaultSalienceTau.
	Tau time.Duration
	// The weights are not negative; all 0 means the defaults.
	Recency, Relevance, Importance float64
}

// Score implements [Salience]; an access later than now counts as now, and a
// negative cosine as 0.
func (s SalienceV2) Score(m Moment) float64 {
	if s.Recency == 0 && s.Relevance == 0 && s.Importance == 0 {
		s.Recency, s.Relevance, s.Importance = DefaultSalienceRecency, DefaultSalienceRelevance, DefaultSalienceImportance
	}
	return unit(s.Recency*m.recency(s.Tau) + s.Relevance*unit(m.Relevance) + s.Importance*unit(m.Importance))
}

// Importance rates a memory, 0 to 1. It is called for each memory that is scored.
type Importance interface {
	Rate(m Moment) float64
}

// SalienceV3 is version 2 with the importance of a model.
type SalienceV3 struct {
	SalienceV2
	Model Importance
}

// Score implements [Salience].
func (s SalienceV3) Score(m Moment) float64 {
	m.Importance = s.Model.Rate(m)
	return s.SalienceV2.Score(m)
}
