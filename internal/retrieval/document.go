package retrieval

import (
	"hash/maphash"
	"slices"
	"strings"
	"sync"
	"time"

	"palimpsest/internal/lex"
	"palimpsest/internal/memory"
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
	terms     []termID // in order
	speaker   string   // name of who speaks; empty where the episode has only a role
	assistant bool     // an assistant without a name speaks
	asks      bool     // it ends in a question
	number    bool     // it holds a digit or a word of time
	relation  bool     // it begins with a relative or friend of the user
	own       bool     // the user mentions himself or herself
}

// The metadata that name who speaks.
const (
	metaSpeaker = "speaker"
	metaName    = "name"
)

func analyse(e *memory.Episode) *document {
	d := &document{
		id: e.ID, session: e.Scope.Session, at: e.Timestamp, terms: termsOf(e.Content), speaker: speakerOf(e),
		asks: asks(e.Content), number: strings.ContainsAny(e.Content, "0123456789"),
	}
	d.number = d.number || slices.ContainsFunc(d.terms, func(id termID) bool { return timeWords()[id] })
	if d.speaker == "" && e.Role == events.RoleUser {
		d.relation, d.own = aboutRelation(e.Content), aboutSpeaker(e.Content)
	}
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

// documents remembers episodes that were analysed. It drops half of
// them at a time, and keeps those used since the last time.
type documents struct {
	mu         sync.Mutex
	newer, old map[place]*document
	terms      int // of newer
}

// maxRemembered bounds the terms of half of the documents; each takes 4 bytes.
const maxRemembered = 2 << 20

// documentTerms is what a document takes besides its terms, counted in terms.
const documentTerms = 64

func newDocuments() *documents { return &documents{newer: map[place]*document{}} }

// get returns a document, nil where it is not remembered.
func (c *documents) get(p place) *document {
	c.mu.Lock()
	defer c.mu.Unlock()
	if d := c.newer[p]; d != nil {
		return d
	}
	d := c.old[p]
	if d != nil {
		c.add(p, d)
	}
	return d
}

// of analyses an episode, or remembers that it did.
func (c *documents) of(e *memory.Episode) *document {
	p := placeOf(e)
	if d := c.get(p); d != nil && d.id == e.ID && d.session == e.Scope.Session && d.at.Equal(e.Timestamp) {
		return d
	}
	d := analyse(e)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.add(p, d)
	return d
}

func (c *documents) add(p place, d *document) {
	c.newer[p] = d
	if c.terms += len(d.terms) + documentTerms; c.terms > maxRemembered {
		c.newer, c.old, c.terms = map[place]*document{}, c.newer, 0
	}
}
