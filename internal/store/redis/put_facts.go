package redis

import (
	"context"
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

// entries are those of the lookup by which any version is found.
func (f newFact) entries(member string) []string { return entriesOf(token(f.Hash), f.about(), member) }

// about is by what a version is found among those of its subject and predicate.
func (f newFact) about() string {
	return token(f.Subject, f.Predicate) + "," + tripleTag(events.Triple{Subject: f.Subject, Predicate: f.Predicate, Object: f.Object}, f.Cardinality)
}

// identity are the fields by which the index finds any version.
func (f newFact) identity() []any {
	return []any{"id", token(f.ID), "rev", f.Revision, "hash", token(f.Hash), "pred", f.about()}
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
		"t", strings.Join(f.terms, " "), metadataTags, tagsOf(f.Metadata))
}

// oldFields are what an after-image needs to know of the row that it replaces.
var (
	oldFields  = []string{"b", "t", "use"}
	oldColumns = []any{"b", "t", "use"}
)

// use is what accesses make of a fact. It is one field of the row, since each that
// is written and read costs.
type use struct {
	count    uint64
	last     int64 // microseconds
	strength float64
}

func parseUse(text string) (u use) {
	count, rest, _ := strings.Cut(text, " ")
	last, strength, _ := strings.Cut(rest, " ")
	u.count, _ = strconv.ParseUint(count, 10, 64) // absent is 0
	u.last, _ = strconv.ParseInt(last, 10, 64)
	u.strength, _ = strconv.ParseFloat(strength, 64)
	return u
}

func (u use) String() string {
	text := append(strconv.AppendUint(nil, u.count, 10), ' ')
	text = append(strconv.AppendInt(text, u.last, 10), ' ')
	return string(strconv.AppendFloat(text, u.strength, 'g', -1, 64))
}

func (s *Store) putFacts(b *batch, state fields, facts []newFact, known known) {
	docs, length := toInt(state["fd"]), toInt(state["fl"])
	spaces := b.place.tenure.spaces.Load()
	b.noWords = state["fd"] == ""
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
		if !fresh && decode("fact", old.view("b"), &was) != nil {
			fresh = true // unreadable, so written over
		}
		m := member(kindFact, f.ID)
		if !fresh {
			b.unlist(newFact{Fact: was}.entries(m)...)
		}
		b.list(append(f.entries(m), entry(byKind, "", m))...)
		own := f.fields()
		use := use{last: max(micros(f.CreatedAt), micros(s.cfg.AccessedFrom())), strength: f.Confidence}
		if fresh {
			docs++
		} else {
			use = parseUse(old["use"])
			strength, last := memory.Renew(was, f.Fact, use.strength, fromMicros(use.last))
			use.strength, use.last = strength, micros(last)
		}
		if fresh || was.Text != f.Text {
			gone := strings.Fields(old["t"])
			length += int64(len(f.terms) - len(gone))
			b.count(lex.Distinct(f.terms, len(f.terms)), 1)
			b.count(lex.Distinct(gone, len(gone)), -1)
			own = append(own, spaces.served().flag(), queue+int64(i))
			ref := store.VectorRef{Target: store.Facts, Scope: b.place.fact, ID: f.ID, Revision: f.Revision}
			b.queued = append(b.queued, queuedText{b.place.queued(spaces.served(), queue+int64(i), m), store.PendingVector{Ref: ref, Text: f.Text}})
			if !fresh {
				b.do("HDEL", key, spaces.forgetting()...)
			}
		}
		b.row(key, kindFact, append(own, "use", use.String(), "prune", s.pruneAt(f.Fact, use))...)
		seen[key] = fields{"b": f.body, "t": strings.Join(f.terms, " "), "use": use.String()}
	}
	if len(facts) > 0 {
		b.set(state, "fd", number(docs))
		b.set(state, "fl", number(length))
	}
}

// pruneAt is when a fact is due for pruning, in microseconds.
func (s *Store) pruneAt(f events.Fact, u use) int64 {
	at, ok := memory.Decays(f, u.strength, fromMicros(u.last))
	if !ok {
		return never
	}
	return micros(at)
}

// Touch implements [store.Applier]. The row is indexed again, which is why
// accesses come in batches.
func (s *Store) Touch(ctx context.Context, fact scope.Scope, ids []string, at time.Time) error {
	if err := fact.Validate(); err != nil {
		return err
	}
	asks := func(p place) [][]any {
		commands := make([][]any, len(ids))
		for i, id := range ids {
			commands[i] = with(factFields, "HMGET", p.row(kindFact, id))
		}
		return commands
	}
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
			u := use{count: old.AccessCount + 1, last: max(micros(at), micros(old.LastAccessed))}
			u.strength = memory.Reinforce(old.Strength, old.DecayRate, old.LastAccessed, at, u.count)
			b.do("HSET", b.place.row(kindFact, ids[i]), "use", u.String(), "prune", s.pruneAt(old.Fact, u))
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
func parseFact(fact scope.Scope, r record) (out store.Fact, err error) {
	err = readFact(&out, fact, r)
	return out, err
}

func readFact(out *store.Fact, fact scope.Scope, r record) error {
	u := parseUse(r.get("use"))
	out.Scope, out.Strength, out.AccessCount, out.LastAccessed = fact, u.strength, u.count, fromMicros(u.last)
	return decode("fact", r.view("b"), &out.Fact)
}
