package redis

import (
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"palimpsest/internal/memory"
	"palimpsest/internal/store"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

const benchScopes, benchEffects, benchFacts, benchWriters = 64, 4, 32, 16

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

// cost is what work took: time, and processor time of the server's one thread and
// of this process. A busy machine changes the first alone.
type cost struct{ wall, server, client time.Duration }

func (c *cost) add(d cost) {
	c.wall, c.server, c.client = c.wall+d.wall, c.server+d.server, c.client+d.client
}

// report compares what n operations of ours took with n bare ones.
func (c cost) report(b *testing.B, bare cost, n int) {
	b.Helper()
	for _, m := range []struct {
		name       string
		ours, bare time.Duration
	}{{"server", c.server, bare.server}, {"client", c.client, bare.client}} {
		if m.bare == 0 {
			continue // the double does not tell
		}
		b.ReportMetric(float64(m.ours.Nanoseconds())/1e3/float64(n), m.name+"-us")
		b.ReportMetric(float64(m.bare.Nanoseconds())/1e3/float64(n), "bare-"+m.name+"-us")
		b.ReportMetric(float64(m.ours)/float64(m.bare), m.name+"-ratio")
	}
}

// spent measures what work takes.
func spent(b *testing.B, s *Store, work func()) cost {
	b.Helper()
	server, client, begun := serverTime(b, s), ownTime(b), time.Now()
	work()
	wall := time.Since(begun)
	return cost{wall, serverTime(b, s) - server, ownTime(b) - client}
}

// serverTime is what the server's main thread has used of a processor.
func serverTime(b *testing.B, s *Store) (used time.Duration) {
	b.Helper()
	reply, err := s.call(b.Context(), "INFO", "cpu")
	if err != nil {
		b.Fatal(err)
	}
	info := parseInfo(text(reply))
	for _, name := range []string{"used_cpu_user_main_thread", "used_cpu_sys_main_thread"} {
		seconds, _ := strconv.ParseFloat(info[name], 64)
		used += time.Duration(seconds * float64(time.Second))
	}
	return used
}

// ownTime is what this process has used of all processors.
func ownTime(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// eachEffect has several writers write the effects of all scopes, each scope's by
// one of them.
func eachEffect(b *testing.B, write func(user string, revision uint64) error) {
	users := make(chan string)
	var wg sync.WaitGroup
	for range benchWriters {
		wg.Go(func() {
			for user := range users {
				for revision := range uint64(benchEffects) {
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
}

// bareRows are the same documents as commands: without counts of words, member
// sets, the scope's state and what guards them.
func (s *Store) bareRows(e events.EffectCommitted) ([][]any, error) {
	p := s.place(e.Scope)
	var commands [][]any
	for _, f := range e.Facts {
		n, err := prepareFact(f)
		if err != nil {
			return nil, err
		}
		row := append([]any{"HSET", p.row(kindFact, f.ID)}, p.scopeFields(kindFact, p.fact)...)
		commands = append(commands, append(append(row, n.fields()...), "q", 1, "use", "0 1 0.8", "prune", 1))
	}
	return commands, nil
}

// BenchmarkApply compares effects with the same rows written by bare pipelined
// HSET, one effect a pipeline, by as many writers.
func BenchmarkApply(b *testing.B) {
	var ours, bare cost
	rounds := 0
	for b.Loop() {
		s, raw := openNew(b, testConfig(b)), openNew(b, testConfig(b))
		turns := []func(){
			func() {
				bare.add(spent(b, raw, func() {
					eachEffect(b, func(user string, revision uint64) error {
						commands, err := raw.bareRows(benchEffect(user, revision))
						if err == nil {
							_, err = raw.pipe(b.Context(), commands)
						}
						return err
					})
				}))
			},
			func() {
				ours.add(spent(b, s, func() {
					eachEffect(b, func(user string, revision uint64) error {
						return s.Apply(b.Context(), benchEffect(user, revision), revision)
					})
				}))
			},
		}
		turns[rounds%2]() // neither is always the first
		turns[1-rounds%2]()
		rounds++
		for _, done := range []*Store{s, raw} { // rows that are left would be read in the next round
			_ = done.Close()
			wipe(b, done.cfg)
		}
	}
	rows := rounds * benchScopes * benchEffects * benchFacts
	b.ReportMetric(float64(rows)/ours.wall.Seconds(), "facts/s")
	b.ReportMetric(float64(rows)/bare.wall.Seconds(), "bare-facts/s")
	b.ReportMetric(bare.wall.Seconds()/ours.wall.Seconds(), "ratio")
	ours.report(b, bare, rows)
}

// searchBlock is how many searches follow one another between two looks at what
// they cost.
const searchBlock = 64

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
		for revision := range uint64(benchEffects) {
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
			_, err := s.client.Do(b.Context(), append(args, "DIALECT", 2)...).Result() // not read as ours are
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
		b.Run(name, func(b *testing.B) { compareSearches(b, s, pair[0], pair[1]) })
	}
}

func compareSearches(b *testing.B, s *Store, ours, bare func() error) {
	defer debug.SetGCPercent(debug.SetGCPercent(200)) // as the program has it
	var times [2][]time.Duration
	var costs [2]cost
	for b.Loop() {
		for i, search := range []func() error{ours, bare} {
			costs[i].add(spent(b, s, func() {
				for range searchBlock {
					begun := time.Now()
					if err := search(); err != nil {
						b.Fatal(err)
					}
					times[i] = append(times[i], time.Since(begun))
				}
			}))
		}
	}
	n := len(times[0])
	for i := range times {
		slices.Sort(times[i])
	}
	for _, at := range []struct {
		name string
		i    int
	}{{"p50", n / 2}, {"p99", n * 99 / 100}} {
		b.ReportMetric(float64(times[0][at.i].Microseconds()), at.name+"-us")
		b.ReportMetric(float64(times[1][at.i].Microseconds()), "bare-"+at.name+"-us")
		b.ReportMetric(float64(times[0][at.i])/float64(times[1][at.i]), at.name+"-ratio")
	}
	costs[0].report(b, costs[1], n)
}
