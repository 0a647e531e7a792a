package redis

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"palimpsest/internal/memory"
	"palimpsest/internal/store"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

const benchScopes, benchFacts, benchWriters = 64, 32, 16

func benchEffect(user string, revision uint64) events.EffectCommitted {
	e := events.EffectCommitted{Header: events.Header{Scope: scope.Scope{Project: "p", User: user}}, Revision: revision, Rule: "turn", CommittedAt: said0}
	for i := range benchFacts {
		text := fmt.Sprintf("%s keeps note %d of number%d in drawer%d", user, i, revision*benchFacts+uint64(i), i%7)
		e.Facts = append(e.Facts, events.Fact{
			ID: fmt.Sprintf("f%d-%d", revision, i), Revision: 1, Kind: events.FactSemantic, Subject: user, Predicate: "KEEPS", Object: text,
			Text: text, Hash: memory.HashText(text), Confidence: 0.8, DecayRate: 0.1, EventTime: said0, CreatedAt: said0, UpdatedAt: said0, ValidFrom: said0,
			SourceType: events.SourceConversation, SourceRole: events.RoleUser, SourceEpisodeIDs: []string{"e1"}, RuleID: "r",
		})
	}
	return e
}

// BenchmarkApply compares effects of 32 facts with the same rows written by bare
// pipelined HSET, one effect a pipeline, by as many writers.
func BenchmarkApply(b *testing.B) {
	each := func(write func(user string, revision uint64) error) time.Duration {
		begun := time.Now()
		users := make(chan string)
		var wg sync.WaitGroup
		for range benchWriters {
			wg.Go(func() {
				for user := range users {
					for revision := range uint64(4) {
						if err := write(user, revision+1); err != nil {
							b.Error(err)
						}
					}
				}
			})
		}
		for u := range benchScopes {
			users <- fmt.Sprintf("u%d", u)
		}
		close(users)
		wg.Wait()
		return time.Since(begun)
	}
	for b.Loop() {
		s, raw := openNew(b, testConfig(b)), openNew(b, testConfig(b))
		bare := each(func(user string, revision uint64) error {
			p := raw.place(scope.Scope{Project: "p", User: user})
			var commands [][]any
			for _, f := range benchEffect(user, revision).Facts {
				n, err := prepareFact(f)
				if err != nil {
					return err
				}
				row := append([]any{"HSET", p.row(kindFact, f.ID)}, p.scopeFields(kindFact, p.fact)...)
				commands = append(commands, append(append(row, n.fields()...), "count", 0, "q", 1, "strength", 0.8, "used", 1, "prune", 1))
			}
			_, err := raw.pipe(b.Context(), commands)
			return err
		})
		ours := each(func(user string, revision uint64) error {
			return s.Apply(b.Context(), benchEffect(user, revision), revision)
		})
		rows := float64(benchScopes * benchFacts * 4)
		b.ReportMetric(rows/ours.Seconds(), "facts/s")
		b.ReportMetric(rows/bare.Seconds(), "bare-facts/s")
		b.ReportMetric(bare.Seconds()/ours.Seconds(), "ratio")
	}
}

// BenchmarkSearch compares the primitives with the bare FT.SEARCH of the same
// question, bodies returned.
func BenchmarkSearch(b *testing.B) {
	s := openNew(b, testConfig(b))
	r := rand.New(rand.NewPCG(1, 2))
	vector := func() []float32 {
		v := make([]float32, 16)
		for i := range v {
			v[i] = float32(r.NormFloat64())
		}
		return v
	}
	for u := range benchScopes {
		for revision := range uint64(4) {
			e := benchEffect(fmt.Sprintf("u%d", u), revision+1)
			if err := s.Apply(b.Context(), e, revision+1); err != nil {
				b.Fatal(err)
			}
			var vectors []store.Vector
			for _, f := range e.Facts {
				vectors = append(vectors, store.Vector{Ref: store.VectorRef{Target: store.Facts, Scope: e.Scope, ID: f.ID, Revision: 1}, Values: vector()})
			}
			if err := s.PutVectors(b.Context(), vectors); err != nil {
				b.Fatal(err)
			}
		}
	}
	sel := scope.Under(scope.Scope{Project: "p", User: "u7"})
	q := store.SearchQuery{Target: store.Facts, Limit: 10}
	bare := func(text string, more ...any) func() error {
		return func() error {
			args := append([]any{"FT.SEARCH", s.layout().index(), text, "RETURN", 1, "b", "LIMIT", 0, 10}, more...)
			_, err := s.call(b.Context(), append(args, "DIALECT", 2)...)
			return err
		}
	}
	v := vector()
	filter := "@k:{f} @p:{p} @u:{u7} @arch:{0}"
	for name, pair := range map[string][2]func() error{
		"text": {
			func() error { _, err := s.SearchText(b.Context(), sel, "note in drawer3", q); return err },
			bare(filter+" @t:($a|$b)", "VERBATIM", "SCORER", "BM25STD", "WITHSCORES", "PARAMS", 4, "a", indexTerm("note"), "b", indexTerm("drawer3")),
		},
		"vector": {
			func() error { _, err := s.SearchVector(b.Context(), sel, v, q); return err },
			bare("("+filter+")=>[KNN 10 @v $v AS d]", "SORTBY", "d", "PARAMS", 2, "v", encodeVector(v)),
		},
	} {
		b.Run(name, func(b *testing.B) {
			var times [2][]time.Duration
			for b.Loop() {
				for i, search := range pair {
					begun := time.Now()
					if err := search(); err != nil {
						b.Fatal(err)
					}
					times[i] = append(times[i], time.Since(begun))
				}
			}
			for i := range times {
				slices.Sort(times[i])
			}
			n := len(times[0])
			for _, at := range []struct {
				name string
				i    int
			}{{"p50", n / 2}, {"p99", n * 99 / 100}} {
				b.ReportMetric(float64(times[0][at.i].Microseconds()), at.name+"-us")
				b.ReportMetric(float64(times[0][at.i])/float64(times[1][at.i]), at.name+"-ratio")
			}
		})
	}
}
