package redis

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"palimpsest/internal/store"
	"palimpsest/pkg/scope"
)

// The kinds of rows. All hashes are indexed by their field k in one index; a row
// that must not be indexed has another type.
const (
	kindState   = "s"
	kindSession = "n"
	kindEpisode = "e"
	kindFact    = "f"
	kindVersion = "v"
	kindEntity  = "i"
	kindHold    = "h"
	kindOutcome = "o"
	// The rest are not hashes, so not indexed.
	kindEdge    = "g" // string: the body
	kindCached  = "c" // string: a model's reply
	kindMembers = "m" // set, before schema 2: kind:id of each row of the projection
	kindLookup  = "l" // sorted set: by what rows are found, see lookup.go
	kindEnds    = "x" // sorted set: session ends by last ordinal
)

// absentLevel is the tag of a level that a scope does not name. No encoded
// identifier holds an underscore.
const absentLevel = "_"

// layout gives every key of one generation.
type layout struct {
	namespace  string
	generation uint64
}

// root begins every key of the generation, and no key of another.
func (l layout) root() string {
	return l.namespace + ":g" + strconv.FormatUint(l.generation, 10) + ":"
}

// wordsRoot begins the keys of a generation that the index leaves out.
func (l layout) wordsRoot() string {
	return l.namespace + ":d" + strconv.FormatUint(l.generation, 10) + ":"
}

func (l layout) index() string { return strings.TrimSuffix(l.root(), ":") }

// alias is the name under which the promoted generation is found.
func (l layout) alias() string { return l.namespace + ":live" }

// epochRecord is the key of the epoch record, which shows that a server lost data; see
// epoch_record.go. It is of no
// generation.
func (l layout) epochRecord() string { return l.namespace + ":witness" }

// lease is the key of the lease of a process that mends the store or builds a
// generation.
func (l layout) lease(what string) string { return l.namespace + ":lease:" + what }

// shared is a key that belongs to no scope. Projects are never empty, so it
// meets no row.
func (l layout) shared(kind string, id ...string) string {
	return l.root() + ":" + kind + ":" + strings.Join(id, ":")
}

// place is where the rows of one fact scope are: in one slot, because the
// scope's hash is all that stands between braces.
type place struct {
	fact scope.Scope
	tag  string // the scope's hash
	base string
	// tenure is the tenure of the generation: a write must be guarded by the tenure
	// under which its keys were made.
	tenure *tenure
}

func (l layout) place(fact scope.Scope) place {
	tag := token(fact.Project, fact.Key())
	return place{fact: fact, tag: tag, base: l.root() + scope.Encode(fact.Project) + ":{" + tag + "}:"}
}

func (t *tenure) place(fact scope.Scope) place {
	p := t.layout.place(fact)
	p.tenure = t
	return p
}

func (p place) state() string { return p.base + kindState }

func (p place) row(kind string, id ...string) string { return p.base + member(kind, id...) }

// member is a row's key within its scope.
func member(kind string, id ...string) string {
	for _, part := range id {
		kind += ":" + scope.Encode(part)
	}
	return kind
}

// words is the key of how many texts of a kind each word is in. It is a hash in the
// scope's slot that no index is to find, so its prefix is another.
func (p place) words(kind string) string {
	return p.tenure.wordsRoot() + strings.TrimPrefix(p.base, p.tenure.root()) + kind
}

// episode is the key by which an id is known once per (session, source).
func (p place) episode(session, source, id string) string {
	return p.row(kindEpisode, token(session, source, id))
}

// token stands for strings of any length in tags and keys. The lengths keep
// apart what concatenation would bring together.
func token(parts ...string) string {
	var text []byte
	for _, part := range parts {
		text = append(append(strconv.AppendInt(text, int64(len(part)), 10), ':'), part...)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}

// ordered is a string that sorts as s does byte by byte, of characters that mean
// nothing in a query.
func ordered(s string) string { return hex.EncodeToString([]byte(s)) }

// orderOf sorts fact scopes by (project, key).
func orderOf(fact scope.Scope) string { return ordered(fact.Project) + " " + fact.Key() }

// owners are fact scopes by their orderOf, or by the tag in the keys of their rows.
// Most rows of an answer share one.
type owners map[string]scope.Scope

// ownersOf maps the keys of the places to their scopes.
func ownersOf(places ...place) owners {
	known := owners{}
	for _, p := range places {
		known[p.tag] = p.fact
	}
	return known
}

// whose returns the scope of a row, from its key if that is known, else from its
// field okey.
func (o owners) whose(row found) (scope.Scope, error) {
	_, tag, _ := bytes.Cut(row.key, []byte("{"))
	tag, _, _ = bytes.Cut(tag, []byte("}"))
	if fact, known := o[string(tag)]; known {
		return fact, nil
	}
	return o.of(row.get("okey"))
}

// of decodes a key that this package wrote, so an error means that the store is
// damaged.
func (o owners) of(okey string) (fact scope.Scope, err error) {
	fact, known := o[okey]
	if known {
		return fact, nil
	}
	coded, key, _ := strings.Cut(okey, " ")
	project, err := hex.DecodeString(coded)
	if err == nil {
		fact, err = scope.ParseKey(string(project), key)
	}
	if err != nil {
		return fact, fmt.Errorf("redis: %w: row of %q: %w", store.ErrDamaged, okey, err)
	}
	o[okey] = fact
	return fact, nil
}

// ofAll decodes the keys of rows.
func (o owners) ofAll(rows []found) ([]scope.Scope, error) {
	facts := make([]scope.Scope, len(rows))
	for i, row := range rows {
		var err error
		if facts[i], err = o.of(row.get("okey")); err != nil {
			return nil, err
		}
	}
	return facts, nil
}

// session decodes the full scope of a row.
func (o owners) session(r record) (full scope.Scope, err error) {
	if full, err = o.of(r.get("okey")); err == nil && r.get("x") != absentLevel {
		full.Session, err = scope.Decode(r.get("x"))
	}
	if err != nil {
		return full, fmt.Errorf("redis: %w: session %q of %q: %w", store.ErrDamaged, r.get("x"), full, err)
	}
	return full, nil
}

// levelTag is how one level of a scope is indexed.
func levelTag(id string) string {
	if id == "" {
		return absentLevel
	}
	return scope.Encode(id)
}

// scopeFields are what every indexed row says of whose it is.
func (p place) scopeFields(kind string, s scope.Scope) []any {
	return append([]any{"k", kind}, p.levels(s)...)
}

func (p place) levels(s scope.Scope) []any {
	return []any{
		"sc", p.tag, "p", scope.Encode(s.Project), "u", levelTag(s.User), "a", levelTag(s.Agent),
		"x", levelTag(s.Session), "okey", orderOf(p.fact),
	}
}
