package telemetry

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"palimpsest/internal/memory"
	"palimpsest/internal/store"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// Store returns s with the calls of its hot paths timed, each a span of the
// trace that it is part of. The rest passes through.
func (m *Metrics) Store(s store.Store) store.Store {
	of := func(name string) operation { return m.backends.operation(backendMemory, name) }
	t := &timedStore{
		Store: s, putEpisodes: of("put_episodes"), endSession: of("end_session"), state: of("state"), claim: of("claim"),
		episodes: of("read_episodes"), facts: of("read_facts"), entities: of("read_entities"), edges: of("read_edges"), holds: of("read_holds"),
		outcomes: of("read_outcomes"), apply: of("apply"), touch: of("touch"),
		searchText: of("search_text"), searchVector: of("search_vector"),
		pendingVectors: of("pending_vectors"), putVectors: of("put_vectors"),
	}
	t.apply.span = "apply"
	return t
}

type timedStore struct {
	store.Store
	putEpisodes, endSession, state, claim   operation
	episodes, facts, entities, edges, holds operation
	outcomes, apply, touch                  operation
	searchText, searchVector                operation
	pendingVectors, putVectors              operation
}

// PutEpisode implements [store.EpisodeWriter].
func (s *timedStore) PutEpisode(ctx context.Context, e memory.Episode) (store.Put, error) {
	ctx, t := s.putEpisodes.begin(ctx)
	put, err := s.Store.PutEpisode(ctx, e)
	t.end(err)
	return put, err
}

// PutEpisodes implements [store.EpisodeWriter].
func (s *timedStore) PutEpisodes(ctx context.Context, es []memory.Episode) ([]store.Put, error) {
	ctx, t := s.putEpisodes.begin(ctx)
	puts, err := s.Store.PutEpisodes(ctx, es)
	t.end(err)
	return puts, err
}

// EndSession implements [store.EpisodeWriter].
func (s *timedStore) EndSession(ctx context.Context, session scope.Scope, end events.SessionEnd) (memory.State, error) {
	ctx, t := s.endSession.begin(ctx)
	state, err := s.Store.EndSession(ctx, session, end)
	t.end(err)
	return state, err
}

// State implements [store.StateReader].
func (s *timedStore) State(ctx context.Context, fact scope.Scope) (memory.State, error) {
	ctx, t := s.state.begin(ctx)
	state, err := s.Store.State(ctx, fact)
	t.end(err)
	return state, err
}

// Claim implements [store.Schedule].
func (s *timedStore) Claim(ctx context.Context, fact scope.Scope, rule string, expect, next store.Claim) (store.Claim, bool, error) {
	ctx, t := s.claim.begin(ctx)
	claim, mine, err := s.Store.Claim(ctx, fact, rule, expect, next)
	t.end(err)
	return claim, mine, err
}

// EpisodeRange implements [store.EpisodeReader].
func (s *timedStore) EpisodeRange(ctx context.Context, fact scope.Scope, r events.Range) ([]memory.Episode, error) {
	ctx, t := s.episodes.begin(ctx)
	es, err := s.Store.EpisodeRange(ctx, fact, r)
	t.end(err)
	return es, err
}

// EpisodesAt implements [store.OrdinalReader].
func (s *timedStore) EpisodesAt(ctx context.Context, fact scope.Scope, ordinals []uint64) ([]memory.Episode, error) {
	ctx, t := s.episodes.begin(ctx)
	es, err := s.Store.EpisodesAt(ctx, fact, ordinals)
	t.end(err)
	return es, err
}

// EpisodesBefore implements [store.EpisodeReader].
func (s *timedStore) EpisodesBefore(ctx context.Context, session scope.Scope, ordinal uint64, n int) ([]memory.Episode, error) {
	ctx, t := s.episodes.begin(ctx)
	es, err := s.Store.EpisodesBefore(ctx, session, ordinal, n)
	t.end(err)
	return es, err
}

// Recent implements [store.EpisodeReader].
func (s *timedStore) Recent(ctx context.Context, sel scope.Selector, q store.RecentQuery) ([]memory.Episode, error) {
	ctx, t := s.episodes.begin(ctx)
	es, err := s.Store.Recent(ctx, sel, q)
	t.end(err)
	return es, err
}

// Sessions implements [store.EpisodeReader].
func (s *timedStore) Sessions(ctx context.Context, sel scope.Selector, q store.SessionQuery) ([]scope.Scope, error) {
	ctx, t := s.episodes.begin(ctx)
	list, err := s.Store.Sessions(ctx, sel, q)
	t.end(err)
	return list, err
}

// Fact implements [store.FactReader].
func (s *timedStore) Fact(ctx context.Context, sel scope.Selector, id string) (store.Fact, error) {
	ctx, t := s.facts.begin(ctx)
	f, err := s.Store.Fact(ctx, sel, id)
	t.end(err)
	return f, err
}

// Facts implements [store.FactReader].
func (s *timedStore) Facts(ctx context.Context, sel scope.Selector, q store.FactQuery) ([]store.Fact, error) {
	ctx, t := s.facts.begin(ctx)
	fs, err := s.Store.Facts(ctx, sel, q)
	t.end(err)
	return fs, err
}

// FactsByID implements [store.FactReader].
func (s *timedStore) FactsByID(ctx context.Context, fact scope.Scope, ids []string) ([]store.Fact, error) {
	ctx, t := s.facts.begin(ctx)
	fs, err := s.Store.FactsByID(ctx, fact, ids)
	t.end(err)
	return fs, err
}

// FactsByHash implements [store.FactReader].
func (s *timedStore) FactsByHash(ctx context.Context, fact scope.Scope, hashes []string) ([]store.Fact, error) {
	ctx, t := s.facts.begin(ctx)
	fs, err := s.Store.FactsByHash(ctx, fact, hashes)
	t.end(err)
	return fs, err
}

// FactsByPredicate implements [store.FactReader].
func (s *timedStore) FactsByPredicate(ctx context.Context, fact scope.Scope, subject, predicate string) ([]store.Fact, error) {
	ctx, t := s.facts.begin(ctx)
	fs, err := s.Store.FactsByPredicate(ctx, fact, subject, predicate)
	t.end(err)
	return fs, err
}

// Edges implements [store.FactReader].
func (s *timedStore) Edges(ctx context.Context, fact scope.Scope, nodes []string) ([]events.Edge, error) {
	ctx, t := s.edges.begin(ctx)
	es, err := s.Store.Edges(ctx, fact, nodes)
	t.end(err)
	return es, err
}

// Entities implements [store.FactReader].
func (s *timedStore) Entities(ctx context.Context, fact scope.Scope, names []string) ([]events.Entity, error) {
	ctx, t := s.entities.begin(ctx)
	es, err := s.Store.Entities(ctx, fact, names)
	t.end(err)
	return es, err
}

// Holds implements [store.FactReader].
func (s *timedStore) Holds(ctx context.Context, fact scope.Scope) ([]events.Hold, error) {
	ctx, t := s.holds.begin(ctx)
	hs, err := s.Store.Holds(ctx, fact)
	t.end(err)
	return hs, err
}

// Outcomes implements [store.OutcomeReader].
func (s *timedStore) Outcomes(ctx context.Context, project, correlationID string) ([]events.Outcome, error) {
	ctx, t := s.outcomes.begin(ctx)
	os, err := s.Store.Outcomes(ctx, project, correlationID)
	t.end(err)
	return os, err
}

// Apply implements [store.Applier].
func (s *timedStore) Apply(ctx context.Context, effect events.EffectCommitted, auditSeq uint64) error {
	ctx, t := s.apply.begin(ctx)
	if t.recording() {
		t.set(describe(effect)...)
	}
	err := s.Store.Apply(ctx, effect, auditSeq)
	t.end(err)
	return err
}

// describe returns the identity and the size of an effect, without its scope.
func describe(effect events.EffectCommitted) []attribute.KeyValue {
	return []attribute.KeyValue{
		attribute.String("palimpsest.rule", effect.Rule),
		attribute.Int64("palimpsest.revision", int64(effect.Revision)),
		attribute.Int("palimpsest.deltas", len(effect.Applied)),
		attribute.Int("palimpsest.facts", len(effect.Facts)),
	}
}

// Touch implements [store.Applier].
func (s *timedStore) Touch(ctx context.Context, fact scope.Scope, ids []string, at time.Time) error {
	ctx, t := s.touch.begin(ctx)
	err := s.Store.Touch(ctx, fact, ids, at)
	t.end(err)
	return err
}

// SearchText implements [store.Searcher].
func (s *timedStore) SearchText(ctx context.Context, sel scope.Selector, text string, q store.SearchQuery) ([]store.Hit, error) {
	ctx, t := s.searchText.begin(ctx)
	hits, err := s.Store.SearchText(ctx, sel, text, q)
	t.found(q, hits)
	t.end(err)
	return hits, err
}

// SearchVector implements [store.Searcher].
func (s *timedStore) SearchVector(ctx context.Context, sel scope.Selector, vector []float32, q store.SearchQuery) ([]store.Hit, error) {
	ctx, t := s.searchVector.begin(ctx)
	hits, err := s.Store.SearchVector(ctx, sel, vector, q)
	t.found(q, hits)
	t.end(err)
	return hits, err
}

func (t timing) found(q store.SearchQuery, hits []store.Hit) {
	if !t.recording() {
		return
	}
	target := "facts"
	if q.Target == store.Episodes {
		target = "episodes"
	}
	t.set(attribute.String("palimpsest.target", target), attribute.Int("palimpsest.hits", len(hits)))
}

// PendingVectors implements [store.VectorWriter].
func (s *timedStore) PendingVectors(ctx context.Context, space uint64, limit int, partitions ...int) ([]store.PendingVector, error) {
	ctx, t := s.pendingVectors.begin(ctx)
	pending, err := s.Store.PendingVectors(ctx, space, limit, partitions...)
	t.end(err)
	return pending, err
}

// PutVectors implements [store.VectorWriter].
func (s *timedStore) PutVectors(ctx context.Context, vectors []store.Vector) error {
	ctx, t := s.putVectors.begin(ctx)
	err := s.Store.PutVectors(ctx, vectors)
	t.end(err)
	return err
}
