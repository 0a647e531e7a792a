package memory

import (
	"math"
	"time"

	"palimpsest/pkg/events"
)

// The defaults of decay (Ebbinghaus 1885, with a stretched exponent).
const (
	DefaultDecayRate      = 0.1  // λ, per day^0.8
	DefaultDecayThreshold = 0.05 // θ, below which a fact is pruned
	decayExponent         = 0.8
)

const day = 24 * time.Hour

// Confidence is c(d) = c₀ · exp(−λ · d^0.8), d the days since the last access.
// It is evaluated when read, never written back; instants before the last
// access count as d = 0.
func Confidence(c0, rate float64, lastAccess, now time.Time) float64 {
	d := now.Sub(lastAccess).Hours() / day.Hours()
	if d <= 0 || rate <= 0 {
		return c0
	}
	return c0 * math.Exp(-rate*math.Pow(d, decayExponent))
}

// PruneAt is when Confidence falls under threshold θ:
// lastAccess + (ln(c₀/θ)/λ)^(1/0.8) days. A rate of 0 never decays (ok is
// false); c₀ ≤ θ is due at once.
func PruneAt(c0, rate, threshold float64, lastAccess time.Time) (at time.Time, ok bool) {
	if rate <= 0 {
		return time.Time{}, false
	}
	if c0 <= threshold {
		return lastAccess, true
	}
	d := math.Pow(math.Log(c0/threshold)/rate, 1/decayExponent)
	ns := d * float64(day)
	if ns > math.MaxInt64/2 {
		return time.Time{}, false
	}
	return lastAccess.Add(time.Duration(ns)), true
}

// Decays says when a fact is due for pruning: as [PruneAt], in whole microseconds, with
// [DefaultDecayThreshold]: what a store indexes and what the stages check again must
// not differ. ok is false for one that is confirmed, closed or archived.
func Decays(f events.Fact, strength float64, lastAccess time.Time) (at time.Time, ok bool) {
	if f.Confirmed || f.ValidUntil != nil || f.ArchivedAt != nil {
		return time.Time{}, false
	}
	at, ok = PruneAt(strength, f.DecayRate, DefaultDecayThreshold, lastAccess)
	return at.Truncate(time.Microsecond), ok
}

// restoredStrength is what decay starts from at least where a fact is reopened: a
// person vouches for it. With less, maintenance could soon close it again.
const restoredStrength = 0.5

// Renew returns what decay starts from after an effect made f of old. A changed
// confidence replaces the strength. A fact that is reopened counts as accessed then,
// with no less than its confidence, since its decay led to its end.
func Renew(old, f events.Fact, strength float64, lastAccess time.Time) (float64, time.Time) {
	if f.Confidence != old.Confidence {
		strength = f.Confidence
	}
	if (old.ValidUntil != nil || old.ArchivedAt != nil) && f.ValidUntil == nil && f.ArchivedAt == nil {
		strength = max(strength, f.Confidence, restoredStrength)
		if f.UpdatedAt.After(lastAccess) {
			lastAccess = f.UpdatedAt
		}
	}
	return strength, lastAccess
}

// Reinforce is the base confidence after an access at now:
// min(1, c(d) + 0.05 · ln(1 + n/20)), n the access count with this one.
func Reinforce(c0, rate float64, lastAccess, now time.Time, n uint64) float64 {
	return min(1, Confidence(c0, rate, lastAccess, now)+0.05*math.Log1p(float64(n)/20))
}
