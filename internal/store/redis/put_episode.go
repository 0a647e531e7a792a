package redis

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"palimpsest/internal/lex"
	"palimpsest/internal/memory"
	"palimpsest/internal/store"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// said is the body of an episode's row; its content and its ordinal are fields
// beside it, and its scope is the row's.
type said struct {
	Scope       scope.Scope     `json:"scope"`
	ID          string          `json:"id"`
	Source      string          `json:"src,omitempty"`
	Role        events.Role     `json:"role"`
	Mode        events.Mode     `json:"mode"`
	Timestamp   int64           `json:"ts"`               // microseconds
	Offset      int             `json:"offset,omitempty"` // of the timestamp, in seconds
	Arrived     int64           `json:"arrived"`          // microseconds
	Clamped     bool            `json:"clamped,omitempty"`
	Request     bool            `json:"request,omitempty"`
	Verbatim    bool            `json:"verbatim,omitempty"`
	Seq         uint64          `json:"seq,omitempty"`
	SourceNode  string          `json:"node,omitempty"`
	Correlation string          `json:"correlation,omitempty"`
	Prompt      string          `json:"prompt,omitempty"`
	Trace       string          `json:"trace,omitempty"`
	Metadata    json.RawMessage `json:"metadata,omitempty"`
}

// PutEpisode implements [store.EpisodeWriter].
func (s *Store) PutEpisode(ctx context.Context, e memory.Episode) (store.Put, error) {
	return store.Only(s.PutEpisodes(ctx, []memory.Episode{e}))
}

// PutEpisodes implements [store.EpisodeWriter]: one transaction of scripts, which
// are refused together or run together. In a cluster that holds for the episodes
// of one fact scope, which share a slot.
func (s *Store) PutEpisodes(ctx context.Context, es []memory.Episode) ([]store.Put, error) {
	if len(es) == 0 {
		return nil, nil
	}
	es = slices.Clone(es)
	bodies := make([][]byte, len(es))
	for i := range es {
		var err error
		if bodies[i], err = s.prepareEpisode(&es[i]); err != nil {
			return nil, err
		}
	}
	var t *tenure
	var now int64
	var served space
	replies, err := settled(func() ([]any, error) {
		t, now = s.tenure(), s.cfg.Now().UnixMicro()
		served = t.spaces.Load().served()
		calls := make([]scriptCall, len(es))
		for i, e := range es {
			calls[i] = t.putting(e, bodies[i], now+int64(i), served)
		}
		return s.guardedAll(ctx, t, putEpisodeScript, calls)
	})
	if err != nil {
		return nil, fmt.Errorf("put episodes: %w", err)
	}
	puts := make([]store.Put, len(es))
	var queued []queuedText
	var listed []string
	for i, e := range es {
		if puts[i], err = s.answerPut(e, e.Scope.Fact(), replies[i]); err != nil {
			return nil, err
		}
		p := t.place(e.Scope.Fact())
		if !puts[i].Known && !puts[i].Conflict {
			t.said.note(p.episode(e.Scope.Session, e.Source, e.ID), fields{"b": string(bodies[i]), "c": e.Content, "ord": strconv.FormatUint(puts[i].Episode.Ordinal, 10)}, s.cfg.Now())
		}
		if listed = append(listed, p.pending()); beginsSession(e, replies[i]) {
			listed = append(listed, p.idle(e.Scope.Session, micros(e.ArrivedAt)))
		}
		if flag := flagOf(e, replies[i], now+int64(i)); flag > 0 {
			entry := p.queued(served, flag, strings.TrimPrefix(p.episode(e.Scope.Session, e.Source, e.ID), p.base))
			queued = append(queued, queuedText{entry, pendingEpisode(puts[i].Episode)})
		}
	}
	t.fresh.note(queued)
	return puts, s.list(ctx, t, append(listed, entriesIn(queued)...)...)
}

// beginsSession reports whether the wait queue may lack the episode's session. That of an
// episode that is known may have lost its entry with the process that was to add it.
func beginsSession(e memory.Episode, reply any) bool {
	list, _ := reply.([]any)
	if len(list) < 4 {
		return e.Scope.Session != "" && e.Mode != events.ModeBackfill
	}
	return list[3] == int64(1)
}

// flagOf is when the text of an episode was flagged as one to embed: now for a new one.
// One that is known may have lost its entry in the queue with the process that was to
// make it.
func flagOf(e memory.Episode, reply any, now int64) int64 {
	list, _ := reply.([]any)
	if known, ok := list[1].([]any); ok {
		return toInt(pick(episodeFlags, known)["q"])
	}
	if e.Mode == events.ModeIncognito {
		return 0
	}
	return now
}

// putting is the script's call that stores e at an instant.
func (t *tenure) putting(e memory.Episode, body []byte, now int64, served space) scriptCall {
	p := t.place(e.Scope.Fact())
	keys := []string{
		p.state(), p.episode(e.Scope.Session, e.Source, e.ID), p.row(kindSession, e.Scope.Session), p.words(kindEpisode), p.lookup(),
	}
	terms, queued := indexTerms(e.Content), ""
	if e.Mode != events.ModeIncognito {
		queued = number(now)
	} else if served.ID > 1 {
		queued = number(incognito)
	}
	args := []any{
		served.flag(), micros(e.ArrivedAt), flag(e.Mode != events.ModeBackfill), flag(e.Scope.Session != ""), queued,
		len(terms), e.Seq, flag(e.Request), strings.TrimPrefix(keys[1], p.base), token(e.Scope.Session), token(e.ID), member(kindSession, e.Scope.Session),
	}
	row := append(p.scopeFields(kindEpisode, e.Scope), "b", body, "c", e.Content, "id", token(e.ID), "oid", ordered(e.ID),
		"src", token(e.Source), "ts", micros(e.Timestamp), "t", strings.Join(terms, " "), metadataTags, tagsOf(e.Metadata))
	for _, list := range [][]any{row, p.scopeFields(kindState, p.fact), p.scopeFields(kindSession, e.Scope)} {
		args = append(append(args, len(list)), list...)
	}
	words := lex.Distinct(terms, len(terms))
	return scriptCall{keys, with(words, append(args, len(words))...)}
}

func (s *Store) answerPut(e memory.Episode, fact scope.Scope, reply any) (store.Put, error) {
	list, _ := reply.([]any)
	if len(list) < 3 {
		return store.Put{}, fmt.Errorf("redis: put episode answered with %v", reply)
	}
	put := store.Put{State: s.parseState(fact, hashOf(list[2]))}
	if list[0] == int64(1) {
		ordinal, err := strconv.ParseUint(text(list[1]), 10, 64)
		e.Ordinal, put.Episode = ordinal, e
		put.Episode.Ordinal = ordinal
		return put, err
	}
	known, err := parseEpisode(pick(episodeFlags, list[1]))
	if err != nil {
		return store.Put{}, err
	}
	return store.KnownPut(e, known, put.State), nil
}

// prepareEpisode brings an episode to the form in which it is stored.
func (s *Store) prepareEpisode(e *memory.Episode) ([]byte, error) {
	settled, err := store.PrepareEpisode(*e, s.cfg.Now)
	if err != nil {
		return nil, err
	}
	*e = settled
	_, offset := e.Timestamp.Zone()
	body := said{
		Scope: e.Scope, ID: e.ID, Source: e.Source, Role: e.Role, Mode: e.Mode, Timestamp: micros(e.Timestamp), Offset: offset,
		Arrived: micros(e.ArrivedAt), Clamped: e.Clamped, Request: e.Request, Verbatim: e.Verbatim, Seq: e.Seq,
		SourceNode: e.SourceNode, Correlation: e.CorrelationID, Prompt: e.Prompt, Trace: e.Traceparent,
	}
	if len(e.Metadata) > 0 {
		raw, err := json.Marshal(e.Metadata)
		if err != nil {
			return nil, fmt.Errorf("redis: put episode: metadata: %w", err)
		}
		body.Metadata = raw
	}
	return json.Marshal(body)
}

// episodeFields are what an episode is read from.
var episodeFields = []string{"b", "c", "ord"}

// episodeFlags are episodeFields and the flag of a text to embed.
var episodeFlags = []string{"b", "c", "ord", "q"}

func parseEpisode(r record) (memory.Episode, error) {
	var b said
	if err := decode("episode", r.view("b"), &b); err != nil {
		return memory.Episode{}, err
	}
	e := memory.Episode{
		ID: b.ID, Source: b.Source, Scope: b.Scope, Role: b.Role, Content: r.get("c"), Timestamp: store.InOffset(b.Timestamp, b.Offset),
		Clamped: b.Clamped, ArrivedAt: fromMicros(b.Arrived), SourceNode: b.SourceNode, Mode: b.Mode, Seq: b.Seq,
		Ordinal: toUint(r.get("ord")), CorrelationID: b.Correlation, Request: b.Request, Prompt: b.Prompt, Verbatim: b.Verbatim,
		Traceparent: b.Trace,
	}
	if len(b.Metadata) > 0 {
		if err := decode("metadata of episode "+e.ID, b.Metadata, &e.Metadata); err != nil {
			return e, err
		}
	}
	return e, nil
}

func flag(set bool) string {
	if set {
		return "1"
	}
	return "0"
}
