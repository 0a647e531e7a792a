package rulepack

import (
	"context"
	"strconv"
	"strings"

	"palimpsest/internal/extract"
	"palimpsest/internal/extract/rulepack/grammar"
	"palimpsest/internal/extract/rulepack/pattern"
	"palimpsest/internal/memory"
	"palimpsest/pkg/events"
)

// Extractor runs packs. It is safe for concurrent use.
type Extractor struct {
	name      string
	languages []*language
}

var _ extract.Extractor = (*Extractor)(nil)

// Load compiles packs. Packs of one language are laid over each other in order,
// so that what a user adds to the shipped ones comes behind them. Errors are
// [*PackError]s that name pack, pattern and field.
func Load(packs ...Pack) (*Extractor, error) {
	var order []string
	merged := make(map[string]Pack)
	for _, p := range packs {
		if err := p.validate(); err != nil {
			return nil, err
		}
		base, known := merged[p.Language]
		if known {
			p = overlay(base, p)
		} else {
			order = append(order, p.Language)
		}
		merged[p.Language] = p
	}
	x := &Extractor{}
	versions := make([]string, 0, len(order))
	for _, name := range order {
		l, err := compileLanguage(merged[name])
		if err != nil {
			return nil, err
		}
		x.languages = append(x.languages, l)
		versions = append(versions, name+l.version)
	}
	x.shareTasks()
	x.name = "rulepack@" + strings.Join(versions, ",")
	return x, nil
}

// shareTasks lets every language know the requests of all: "Translate: je suis
// boulanger".
func (x *Extractor) shareTasks() {
	all := grammar.Phrases{}
	for _, l := range x.languages {
		for word, list := range l.lx.Tasks {
			all[word] = append(all[word], list...)
		}
	}
	for _, l := range x.languages {
		l.lx.Tasks = all
	}
}

// New loads the shipped packs and those of a user on top.
func New(more ...Pack) (*Extractor, error) {
	packs, err := Shipped()
	if err != nil {
		return nil, err
	}
	return Load(append(packs, more...)...)
}

// Name implements [extract.Extractor].
func (x *Extractor) Name() string { return x.name }

// Extract implements [extract.Extractor].
func (x *Extractor) Extract(ctx context.Context, episodes []memory.Episode, in extract.Context) ([]events.Candidate, error) {
	turns := make(map[string][]memory.Episode)
	for _, e := range in.Before {
		turns[e.Scope.Session] = append(turns[e.Scope.Session], e)
	}
	var out []events.Candidate
	for _, e := range episodes {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		session := e.Scope.Session
		before := turns[session]
		if len(before) > extract.ContextTurns {
			before = before[len(before)-extract.ContextTurns:]
		}
		found, err := x.episode(e, before, in.Rule)
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
		if e.Mode == events.ModeIncognito {
			continue
		}
		turns[session] = append(before[:len(before):len(before)], e)
	}
	return out, nil
}

// episode is a function of one episode and the turns before it.
func (x *Extractor) episode(e memory.Episode, before []memory.Episode, rule string) ([]events.Candidate, error) {
	if e.Mode == events.ModeIncognito {
		return nil, nil
	}
	wanted, replaces, err := intent(e)
	if err != nil {
		return nil, err
	}
	var found []events.Candidate
	if c, ok := explicit(e); ok {
		found = []events.Candidate{c}
	} else if e.Role == events.RoleUser {
		found = x.read(e, before)
	}
	if wanted != "" && len(found) == 0 {
		found = []events.Candidate{intended(e)}
	}
	meta := extract.Inherited(e)
	for i := range found {
		c := &found[i]
		c.ID = events.HashID(rule, x.name, e.Scope.Project, e.Scope.Key(), e.Source, e.ID, strconv.Itoa(i))
		c.SourceEpisodeIDs = []string{e.ID}
		c.Ordinal, c.SourceRole = e.Ordinal, e.Role
		if e.Scope.Session != "" {
			c.SessionIDs = []string{e.Scope.Session}
		}
		c.Metadata, c.Extractor = meta, x.name
		c.Intent, c.Replaces = wanted, replaces
	}
	return found, nil
}

// read runs the language of the text.
func (x *Extractor) read(e memory.Episode, before []memory.Episode) []events.Candidate {
	content := blank(e.Content)
	var out []events.Candidate
	for _, l := range x.reading(content, before) {
		r := &reading{
			l: l, steps: pattern.TextSteps, text: content, said: e.Timestamp, at: locate(e.Timestamp, e.Metadata),
			known: l.introduced(before), before: before, seen: make(map[events.Triple]int), lone: make(map[events.Triple]bool),
		}
		var q *question
		if n := len(before); n > 0 && before[n-1].Role != events.RoleUser {
			q = l.asked(blank(before[n-1].Content))
		}
		r.read(q)
		out = append(out, r.drafts...)
	}
	return out
}

// introduced collects the people whom the speaker named in the turns before.
func (l *language) introduced(before []memory.Episode) *people {
	known := newPeople()
	for _, e := range before {
		if e.Role != events.RoleUser || e.Mode == events.ModeIncognito {
			continue
		}
		ts := l.lx.Tokenize(blank(e.Content))
		for i := range ts {
			if who, _ := l.mentioned(ts, i); who != nil {
				known.meet(who)
			}
		}
	}
	return known
}

// Mentions finds the names in a text, each once, in the order of the text.
func (x *Extractor) Mentions(content string) []events.Mention {
	content = blank(content)
	var out []events.Mention
	for _, l := range x.reading(content, nil) {
		for _, s := range l.lx.Sentences(l.lx.Tokenize(content)) {
			out = append(out, l.lx.Mentions(s.Tokens)...)
		}
	}
	return grammar.Distinct(out)
}
