package retrieval

import (
	"hash/maphash"
	"slices"
	"strings"
	"sync"
	"time"

	"palimpsest/internal/embed"
	"palimpsest/internal/lex"
	"palimpsest/internal/memory"
	"palimpsest/internal/store"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// maxTerms bounds the terms of a text that scoring looks at.
const maxTerms = 1023

// termID is a term by its hash. Two terms of one hash would count as one, of which
// a text of a thousand terms has a chance of one in ten million.
type termID uint32

var termSeed = maphash.MakeSeed()

func idOf(term string) termID { return termID(maphash.String(termSeed, term)) }

// document is what scoring needs to know of an episode.
type document struct {
	id        string
	session   string
	at        time.Time
	terms     []termID   // in order
	words     []int32    // distinct, by their numbers
	speaker   string     // name of who speaks; empty where the episode has only a role
	assistant bool       // an assistant without a name speaks
	asks      bool       // it ends in a question
	number    bool       // it holds a digit or a word of time
	relation  bool       // it begins with a relative or friend of the user
	own       bool       // the user mentions himself or herself
	names     bool       // it holds a name, or a relative or friend
	other     termID     // the name of another person who is its subject; 0 for none
	pronoun   bool       // other is a pronoun
	kinds     valueKinds // that it holds
}

// The metadata that name who speaks.
const (
	metaSpeaker = "speaker"
	metaName    = "name"
)

func analyse(e *memory.Episode, table embed.Words) *document {
	d := &document{
		id: e.ID, session: e.Scope.Session, at: e.Timestamp, terms: termsOf(e.Content), words: wordsOf(table, e.Content), speaker: speakerOf(e),
		asks: asks(e.Content), number: strings.ContainsAny(e.Content, "0123456789"),
	}
	d.number = d.number || slices.ContainsFunc(d.terms, func(id termID) bool { return timeWords()[id] })
	if d.speaker == "" && e.Role == events.RoleUser {
		d.relation, d.own = aboutRelation(e.Content), aboutSpeaker(e.Content)
		if name := aboutOther(e.Content); name != "" {
			d.other, d.pronoun = idOf(name), slices.Contains(pronounWords, name)
		}
	}
	d.names = holdsName(e.Content) || slices.ContainsFunc(d.terms, func(id termID) bool { return relations()[id] })
	d.kinds = kindsIn(e.Content, d.terms)
	d.assistant = d.speaker == "" && e.Role == events.RoleAssistant
	return d
}

func termsOf(text string) []termID {
	terms := lex.Terms(text)
	ids := make([]termID, min(len(terms), maxTerms))
	for i := range ids {
		ids[i] = idOf(terms[i])
	}
	return ids
}

// speakerOf is the name in the metadata; that of a role is none.
func speakerOf(e *memory.Episode) string {
	for _, key := range []string{metaSpeaker, metaName} {
		name, _ := e.Metadata[key].(string)
		if name = lex.Fold(strings.TrimSpace(name)); name != "" && !isRole(name) {
			return name
		}
	}
	return ""
}

func isRole(name string) bool {
	switch events.Role(name) {
	case events.RoleUser, events.RoleAssistant, events.RoleSystem, events.RoleTool:
		return true
	}
	return false
}

func asks(text string) bool {
	text = strings.TrimSpace(text)
	return strings.HasSuffix(text, "?") || strings.HasSuffix(text, "？")
}

// place is where an episode stands: its fact scope and its ordinal there.
type place struct {
	scope   scope.Scope
	ordinal uint64
}

func placeOf(e *memory.Episode) place { return place{e.Scope.Fact(), e.Ordinal} }

// remembered keeps values read from texts. It drops half of them at a time, and keeps
// those used since the last time.
type remembered[K comparable, V any] struct {
	mu         sync.Mutex
	newer, old map[K]V
	terms      int // of newer
}

// maxRemembered bounds the terms of half of the values; each takes 4 bytes.
const maxRemembered = 2 << 20

// textTerms is what a text takes besides its terms, counted in terms.
const textTerms = 64

func newRemembered[K comparable, V any]() *remembered[K, V] {
	return &remembered[K, V]{newer: map[K]V{}}
}

func (r *remembered[K, V]) get(key K, terms func(V) int) (v V, known bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if v, known = r.newer[key]; known {
		return v, true
	}
	if v, known = r.old[key]; known {
		r.add(key, v, terms(v))
	}
	return v, known
}

func (r *remembered[K, V]) put(key K, v V, terms int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.add(key, v, terms)
}

func (r *remembered[K, V]) add(key K, v V, terms int) {
	r.newer[key] = v
	if r.terms += terms + textTerms; r.terms > maxRemembered {
		r.newer, r.old, r.terms = map[K]V{}, r.newer, 0
	}
}

// documents are the episodes that were analysed.
type documents struct {
	kept  *remembered[place, *document]
	table embed.Words
}

func newDocuments() *documents { return &documents{kept: newRemembered[place, *document]()} }

// get returns a document, nil where it is not remembered.
func (c *documents) get(p place) *document {
	d, _ := c.kept.get(p, func(d *document) int { return len(d.terms) + len(d.words) })
	return d
}

// of analyses an episode, or remembers that it did.
func (c *documents) of(e *memory.Episode) *document {
	p := placeOf(e)
	if d := c.get(p); d != nil && d.id == e.ID && d.session == e.Scope.Session && d.at.Equal(e.Timestamp) {
		return d
	}
	d := analyse(e, c.table)
	c.kept.put(p, d, len(d.terms)+len(d.words))
	return d
}

// version is one of a fact, whose text never changes.
type version struct {
	scope    scope.Scope
	id       string
	revision uint64
	hash     string // of the text: a scope that is erased may have the same ids again
}

// statement is what scoring needs to know of a fact's text.
type statement struct {
	terms []termID
	words []int32
}

// statements are those of facts.
type statements struct {
	kept  *remembered[version, statement]
	table embed.Words
}

func newStatements() *statements { return &statements{kept: newRemembered[version, statement]()} }

func (s *statements) of(f *store.Fact) statement {
	v := version{f.Scope, f.ID, f.Revision, f.Hash}
	own, known := s.kept.get(v, func(s statement) int { return len(s.terms) + len(s.words) })
	if !known {
		own = statement{termsOf(f.Text), wordsOf(s.table, f.Text)}
		s.kept.put(v, own, len(own.terms)+len(own.words))
	}
	return own
}
