package retrieval_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"palimpsest/internal/embed"
	"palimpsest/internal/embed/static"
	"palimpsest/internal/memory"
	"palimpsest/internal/retrieval"
	"palimpsest/internal/store"
	"palimpsest/internal/store/redis"
	"palimpsest/internal/store/sqlite"
	"palimpsest/internal/testengine/redisdouble"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// TestStoresFindTheSame: of two stores that hold the same, SQLite and Redis, a search
// finds the same ten for 95 of 100 questions. The server is the one that TEST_REDIS_URL
// names, or else a double.
func TestStoresFindTheSame(t *testing.T) {
	t.Parallel()
	const questions, least = 200, 190
	embedder, err := static.New()
	if err != nil {
		t.Fatal(err)
	}
	files, err := sqlite.Open(t.Context(), sqlite.Config{Path: filepath.Join(t.TempDir(), "memory.db"), Embedder: embedder.Info()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = files.Close() })
	server, err := redis.Open(t.Context(), redis.Config{
		URL: redisdouble.URL(t), Namespace: fmt.Sprintf("same-%d", time.Now().UnixNano()), Embedder: embedder.Info(),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	stores := []store.Store{files, server}
	var engines []*retrieval.Engine
	for _, s := range stores {
		for _, user := range []string{"ana", "bea"} {
			converse(t, s, embedder, scope.Scope{Project: "p", User: user})
		}
		engine, err := retrieval.New(retrieval.DefaultConfig(), s, embed.Only(embedder))
		if err != nil {
			t.Fatal(err)
		}
		engines = append(engines, engine)
	}
	r := rand.New(rand.NewPCG(3, 4))
	same := 0
	for i := range questions {
		q := retrieval.Query{
			Scope: scope.Under(scope.Scope{Project: "p", User: "ana"}), Text: "What does " + clause(r) + "?", Limit: 10, Facts: true, Episodes: true,
			Now: time.Unix(0, 0).AddDate(0, 3, 0).UTC(),
		}
		if i%4 == 0 {
			q.Scope = scope.Selector{Project: "p", All: true}
		}
		var answers [2][]string
		for n, engine := range engines {
			found, err := engine.Search(t.Context(), q)
			if err != nil || len(found.Degraded) > 0 || len(found.Hits) != q.Limit {
				t.Fatalf("%q: %d hits, degraded %v: %v", q.Text, len(found.Hits), found.Degraded, err)
			}
			for _, h := range found.Hits {
				answers[n] = append(answers[n], nameOf(h))
			}
			slices.Sort(answers[n])
		}
		if slices.Equal(answers[0], answers[1]) {
			same++
		} else {
			t.Logf("%q: SQLite finds %v, Redis %v", q.Text, answers[0], answers[1])
		}
	}
	if same < least {
		t.Errorf("the same ten for %d of %d questions, want %d", same, questions, least)
	}
}

func nameOf(h retrieval.Hit) string {
	if h.Fact != nil {
		return h.Fact.Scope.User + " fact " + h.Fact.ID
	}
	return h.Episode.Scope.User + " episode " + h.Episode.ID
}

// clause tells something of someone.
func clause(r *rand.Rand) string {
	pick := func(words ...string) string { return words[r.IntN(len(words))] }
	return pick("my brother", "Ana", "Tom", "our neighbour", "my boss", "Marta", "the doctor", "my daughter") + " " +
		pick("think of", "remember about", "plan for", "buy for", "cook for", "write about", "learn about", "forget about") + " " +
		pick("the", "a new", "an old", "my", "the second") + " " +
		pick("garden", "guitar", "holiday in Lisbon", "birthday", "car", "cat", "marathon", "school", "wedding", "laptop", "bread", "novel", "house") + " " +
		pick("at home", "in spring", "with friends", "after work", "on Sunday", "because of the rain", "for the first time", "at the lake")
}

// converse stores 600 episodes and 300 facts of a scope, with their vectors.
func converse(t *testing.T, s store.Store, embedder embed.Embedder, of scope.Scope) {
	t.Helper()
	r := rand.New(rand.NewPCG(1, uint64(of.User[0])))
	effect := events.EffectCommitted{Header: events.Header{Scope: of}, Revision: 1, Rule: "turn", CommittedAt: time.Unix(1, 0)}
	var episodes []memory.Episode
	for i := range 600 {
		at := time.Unix(int64(i)*7200, 0).UTC()
		own := of
		own.Session = fmt.Sprint("s", i/40)
		text := "I heard that " + clause(r) + ". But " + clause(r) + "."
		episodes = append(episodes, memory.Episode{
			ID: fmt.Sprint(i), Source: "app", Scope: own, Role: events.RoleUser, Content: text, Timestamp: at, ArrivedAt: at, Mode: events.ModePersistent,
		})
		if i%2 == 0 {
			fact := clause(r)
			effect.Facts = append(effect.Facts, events.Fact{
				ID: fmt.Sprint("f", i), Revision: 1, Kind: events.FactSemantic, Subject: of.User, Predicate: "TELLS", Object: fact, Text: fact + ".",
				Hash: memory.HashText(fact), Confidence: 0.9, CreatedAt: at, EventTime: at, ValidFrom: at, UpdatedAt: at,
				SourceEpisodeIDs: []string{fmt.Sprint(i)}, SessionIDs: []string{own.Session},
			})
		}
	}
	for page := range slices.Chunk(episodes, 50) { // a slow machine stores a page within the limit of a request
		if _, err := s.PutEpisodes(t.Context(), page); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Apply(t.Context(), effect, 1); err != nil {
		t.Fatal(err)
	}
	texts := make([]string, 0, len(episodes)+len(effect.Facts))
	var vectors []store.Vector
	for _, e := range episodes {
		texts = append(texts, e.Content)
		vectors = append(vectors, store.Vector{Ref: store.VectorRef{Target: store.Episodes, Scope: e.Scope, ID: e.ID, Source: e.Source}})
	}
	for _, f := range effect.Facts {
		texts = append(texts, f.Text)
		vectors = append(vectors, store.Vector{Ref: store.VectorRef{Target: store.Facts, Scope: of, ID: f.ID, Revision: 1}})
	}
	values, err := embedder.Embed(t.Context(), texts)
	if err != nil {
		t.Fatal(err)
	}
	for i := range vectors {
		vectors[i].Values = values[i]
	}
	for page := range slices.Chunk(vectors, 50) {
		if err := s.PutVectors(t.Context(), page); err != nil {
			t.Fatal(err)
		}
	}
}
