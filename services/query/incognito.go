package query

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/google/uuid"

	"palimpsest/internal/lex"
	"palimpsest/internal/memory"
	"palimpsest/internal/retrieval"
	"palimpsest/internal/store"
	"palimpsest/pkg/api"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// The bounds of incognito episodes.
const (
	incognitoLife     = 2 * time.Hour // since the last episode of the session
	incognitoEpisodes = 1000          // of a session; the oldest goes first
	incognitoBytes    = 64 << 20      // of all sessions
	incognitoOverhead = 512           // bytes of an episode beside its text
	incognitoHits     = 10            // of a search without a limit
	incognitoAhead    = 5 * time.Minute
)

// incognito holds the incognito episodes in the memory of the process. No stream, no
// store, no model and no embedder gets them, and they end with the process.
type incognito struct {
	mu       sync.Mutex
	sessions map[scope.Scope]*unwritten
	bytes    int
}

// unwritten is one session.
type unwritten struct {
	episodes []memory.Episode // by their ordinals
	last     time.Time
	bytes    int
	ordinal  uint64
}

// add keeps the episodes of a session, or none where there is no room. An id that the
// session has is no new episode.
func (in *incognito) add(said []memory.Episode, now time.Time) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.expire(now)
	size := 0
	for _, e := range said {
		size += sizeOf(e)
	}
	if in.bytes+size > incognitoBytes {
		return api.NewProblem(http.StatusTooManyRequests, api.CodeRateLimited, "mode",
			"incognito messages take %d MiB already; they expire after %v", incognitoBytes>>20, incognitoLife)
	}
	if in.sessions == nil {
		in.sessions = map[scope.Scope]*unwritten{}
	}
	at := in.sessions[said[0].Scope]
	if at == nil {
		at = &unwritten{}
		in.sessions[said[0].Scope] = at
	}
	at.last = now
	for _, e := range said {
		if slices.ContainsFunc(at.episodes, func(known memory.Episode) bool { return known.ID == e.ID }) {
			continue
		}
		at.ordinal++
		e.Ordinal = at.ordinal
		at.episodes = append(at.episodes, e)
		at.bytes, in.bytes = at.bytes+sizeOf(e), in.bytes+sizeOf(e)
		if len(at.episodes) > incognitoEpisodes {
			oldest := sizeOf(at.episodes[0])
			at.episodes = slices.Delete(at.episodes, 0, 1)
			at.bytes, in.bytes = at.bytes-oldest, in.bytes-oldest
		}
	}
	return nil
}

// expire forgets the sessions that were silent for too long.
func (in *incognito) expire(now time.Time) {
	for s, at := range in.sessions {
		if now.Sub(at.last) >= incognitoLife {
			in.bytes -= at.bytes
			delete(in.sessions, s)
		}
	}
}

func sizeOf(e memory.Episode) int {
	text, _ := json.Marshal(e.Metadata) // it came as JSON
	return len(e.Content) + len(text) + incognitoOverhead
}

// within returns the episodes of the session that a selector names; none for a wider
// one.
func (in *incognito) within(sel scope.Selector, now time.Time) (out []memory.Episode) {
	if in == nil || deref(sel.Session) == "" {
		return nil
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	in.expire(now)
	for s, at := range in.sessions {
		if sel.Match(s) {
			out = append(out, at.episodes...)
		}
	}
	return out
}

// forget drops the sessions within a selector.
func (in *incognito) forget(sel scope.Selector) {
	if in == nil {
		return
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	for s, at := range in.sessions {
		if sel.Match(s) {
			in.bytes -= at.bytes
			delete(in.sessions, s)
		}
	}
}

// checkMode refuses an incognito message that would have to be written down.
func (s *Service) checkMode(p events.EpisodeRecorded, of api.Record) error {
	refuse := func(reason string) error {
		return &events.FieldError{Field: "mode", Code: events.CodeInvalidField, Reason: reason}
	}
	switch {
	case p.Mode != events.ModeIncognito:
		return nil
	case s.incognito == nil:
		return refuse("incognito is not offered here: its messages live in the memory of one process, and this installation has several or stores elsewhere")
	case p.Scope.Session == "":
		return refuse("incognito needs a session: only reads of that session show it")
	case of.Prompt != "" || of.Infer != nil:
		return refuse("nothing is extracted from incognito messages: leave prompt and infer out")
	case slices.ContainsFunc(of.Messages, func(m api.Message) bool { return m.Mode != string(events.ModeIncognito) }):
		return refuse("either all messages of a request are incognito, or none is")
	}
	return nil
}

// keepIncognito keeps messages in memory. The answer has no token: they show at once.
func (s *Service) keepIncognito(ctx context.Context, said said) (*written, error) {
	if reached(ctx, said.owner) != nil {
		return nil, noUser()
	}
	now := s.deps.Now()
	correlation := uuid.NewString()
	out := &api.Written{CorrelationID: correlation, Status: statusDone}
	episodes := make([]memory.Episode, len(said.payloads))
	for i, p := range said.payloads {
		e := memory.Episode{
			ID: either(said.ids[i], events.HashID(correlation, strconv.Itoa(i))), Source: source, Scope: p.Scope, Role: p.Role, Content: p.Content,
			Timestamp: p.Timestamp.Time, ArrivedAt: now, SourceNode: p.SourceNode, Metadata: p.Metadata, Mode: p.Mode,
		}
		if e.Timestamp.IsZero() || e.Timestamp.After(now.Add(incognitoAhead)) {
			e.Clamped = !e.Timestamp.IsZero()
			e.Timestamp = now
		}
		episodes[i] = e
		out.Episodes = append(out.Episodes, api.Accepted{ID: e.ID})
	}
	if err := s.incognito.add(episodes, now); err != nil {
		return nil, err
	}
	return &written{Status: http.StatusOK, Body: out}, nil
}

// withIncognito merges a page of episodes with the incognito episodes of its
// session, in the order of the page.
func (s *Service) withIncognito(ctx context.Context, sel scope.Selector, q store.RecentQuery, episodes []memory.Episode) ([]memory.Episode, error) {
	sel, err := narrowed(ctx, sel)
	if err != nil {
		return nil, err
	}
	for _, e := range s.incognito.within(sel, s.deps.Now()) {
		if spans(q.After, q.Before, e.Timestamp) && q.Filter.KeepsEpisode(&e) && (q.Cursor == nil || q.Cursor.Before(store.CursorOf(e))) {
			episodes = append(episodes, e)
		}
	}
	slices.SortStableFunc(episodes, func(a, b memory.Episode) int {
		switch x, y := store.CursorOf(a), store.CursorOf(b); {
		case x.Before(y):
			return -1
		case y.Before(x):
			return 1
		}
		return 0
	})
	return episodes[:min(len(episodes), q.Limit)], nil
}

func spans(after, before, at time.Time) bool {
	return (after.IsZero() || at.After(after)) && (before.IsZero() || at.Before(before))
}

// findIncognito adds the incognito episodes of the session of a question to the first
// page of its hits. Their score is the share of the question's terms that they have.
func (s *Service) findIncognito(q retrieval.Query, first bool, out *api.Found) {
	terms := lex.Terms(q.Text)
	if !first || !q.Episodes || len(terms) == 0 {
		return
	}
	before := len(out.Results)
	for _, e := range s.incognito.within(q.Scope, s.deps.Now()) {
		if !spans(q.After, q.Before, e.Timestamp) || !q.Filter.KeepsEpisode(&e) {
			continue
		}
		has, n := lex.Terms(e.Content), 0
		for _, t := range terms {
			if slices.Contains(has, t) {
				n++
			}
		}
		if score := float64(n) / float64(len(terms)); n > 0 && score >= q.MinScore {
			view := viewEpisode(e)
			out.Results = append(out.Results, api.Hit{Type: "episode", ID: e.ID, Score: score, Text: e.Content, Episode: &view})
		}
	}
	if len(out.Results) == before {
		return
	}
	slices.SortStableFunc(out.Results, func(a, b api.Hit) int {
		switch {
		case a.Score > b.Score:
			return -1
		case a.Score < b.Score:
			return 1
		}
		return 0
	})
	most := q.Limit
	if most == 0 {
		most = max(before, incognitoHits)
	}
	out.Results = out.Results[:min(len(out.Results), most)]
}
