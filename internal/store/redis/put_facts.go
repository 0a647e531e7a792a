package redis

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"palimpsest/internal/lex"
	"palimpsest/internal/memory"
	"palimpsest/internal/store"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// newFact is an after-image with all that can be worked out before its turn.
type newFact struct {
	events.Fact
	body  string
	terms []string
}

func prepareFact(f events.Fact) (newFact, error) {
	f = store.WholeMicros(f)
	text, err := encode("fact "+f.ID, f)
	return newFact{Fact: f, body: text, terms: indexTerms(f.Text)}, err
}

// identity are the fields by which any version is found.
func (f newFact) identity() []any {
	key := token(f.Subject, f.Predicate) + "," + tripleTag(events.Triple{Subject: f.Subject, Predicate: f.Predicate, Object: f.Object}, f.Cardinality)
	return []any{"id", token(f.ID), "rev", f.Revision, "hash", token(f.Hash), "pred", key}
}

// tripleTag is what a version is found by among those of its subject and
// predicate: its object, or that it has cardinality one.
func tripleTag(t events.Triple, c events.Cardinality) string {
	if c == events.One {
		return token(t.Subject, t.Predicate, "one")
	}
	return token(t.Subject, t.Predicate, "of", lex.Object(t.Object))
}

// fields are those of the newest version.
func (f newFact) fields() []any {
	until, archived := never, "0"
	if f.ValidUntil != nil {
		until = micros(*f.ValidUntil)
	}
	if f.ArchivedAt != nil {
		archived = "1"
	}
	sessions := make([]string, len(f.SessionIDs))
	for i, id := range f.SessionIDs {
		sessions[i] = token(id)
	}
	return append(f.identity(), "b", f.body, "oid", ordered(f.ID), "kind", scope.Encode(string(f.Kind)), "ses", strings.Join(sessions, ","),
		"ct", micros(f.CreatedAt), "et", micros(f.EventTime), "vf", micros(f.ValidFrom), "vu", until, "arch", archived,
		"len", len(f.terms), "t", strings.Join(f.terms, " "))
}

// oldFields are what an after-image needs to know of the row that it replaces.
var (
	oldFields  = []string{"b", "len", "strength", "used"}
	oldColumns = []any{"b", "len", "strength", "used"}
)

func (s *Store) putFacts(b *batch, state fields, facts []newFact, known known) {
	docs, length := state.int("fd"), state.int("fl")
	queue := s.cfg.Now().UnixMicro()
	seen := map[string]fields{}
	for i, f := range facts {
		key := b.place.row(kindFact, f.ID)
		old := known.facts[i]
		if again, ok := seen[key]; ok {
			old = again
		}
		var was events.Fact
		fresh := old["b"] == ""
		if !fresh && json.Unmarshal([]byte(old["b"]), &was) != nil {
			fresh = true // unreadable, so written over
		}
		own := append(b.place.scopeFields(kindFact, b.place.fact), f.fields()...)
		strength := f.Confidence
		used := micros(f.CreatedAt)
		if fresh {
			docs++
			own = append(own, "count", 0)
		} else if used = old.int("used"); f.Confidence == was.Confidence {
			strength = old.float("strength")
		}
		if fresh || was.Text != f.Text {
			length += int64(len(f.terms)) - old.int("len")
			b.count(distinct(f.terms), 1)
			if !fresh {
				b.count(distinct(indexTerms(was.Text)), -1)
			}
			own = append(own, "q", queue+int64(i))
			if !fresh {
				b.do("HDEL", key, "v")
			}
		}
		own = append(own, "strength", formatFloat(strength), "used", used, "prune", s.pruneAt(f.Fact, strength, used))
		b.do("HSET", key, own...)
		seen[key] = fields{"b": f.body, "len": strconv.Itoa(len(f.terms)), "strength": formatFloat(strength), "used": number(used)}
	}
	if len(facts) > 0 {
		b.set(state, "fd", number(docs))
		b.set(state, "fl", number(length))
	}
}

// pruneAt is when a fact is due for pruning, in microseconds.
func (s *Store) pruneAt(f events.Fact, strength float64, used int64) int64 {
	at, ok := memory.PruneAt(strength, f.DecayRate, s.cfg.DecayThreshold, fromMicros(used))
	if !ok || f.ArchivedAt != nil {
		return never
	}
	return micros(at)
}

func formatFloat(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }

// Touch implements [store.Applier]. The row is indexed anew, which is why
// accesses come in batches.
func (s *Store) Touch(ctx context.Context, fact scope.Scope, ids []string, at time.Time) error {
	if err := fact.Validate(); err != nil {
		return err
	}
	asks := func(p place) [][]any { return askFacts(p, ids) }
	return s.write(ctx, fact, asks, func(_ fields, replies []any, b *batch) error {
		touched := map[string]bool{}
		for i, reply := range replies {
			f := pick(factFields, reply)
			if f["b"] == "" || touched[ids[i]] {
				continue
			}
			touched[ids[i]] = true
			old, err := parseFact(fact, f)
			if err != nil {
				return err
			}
			n := old.AccessCount + 1
			strength := memory.Reinforce(old.Strength, old.DecayRate, old.LastAccessed, at, n)
			used := max(micros(at), micros(old.LastAccessed))
			b.do("HSET", b.place.row(kindFact, ids[i]), "count", n, "strength", formatFloat(strength), "used", used,
				"prune", s.pruneAt(old.Fact, strength, used))
		}
		return nil
	})
}

// indexTerms are a text's terms as the index holds them: words that its tokenizer
// neither splits nor folds nor takes for numbers.
func indexTerms(text string) []string {
	terms := lex.Terms(text)
	for i, t := range terms {
		terms[i] = indexTerm(t)
	}
	return terms
}

func indexTerm(t string) string {
	for _, c := range []byte(t) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return "x" + ordered(t)
		}
	}
	return "w" + t
}

// parseFact reads a fact's row.
func parseFact(fact scope.Scope, f fields) (store.Fact, error) {
	out := store.Fact{
		Scope: fact, Strength: f.float("strength"), AccessCount: f.uint("count"), LastAccessed: fromMicros(f.int("used")),
		VectorPending: f.uint("q") != 0,
	}
	if err := json.Unmarshal([]byte(f["b"]), &out.Fact); err != nil {
		return out, fmt.Errorf("redis: %w: fact: %w", store.ErrDamaged, err)
	}
	return out, nil
}
