package clickhouse

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"palimpsest/internal/audit"
	"palimpsest/internal/audit/audittest"
	"palimpsest/internal/testengine/clickhouseserver"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

func begin(t *testing.T, cfg Config) *Log {
	t.Helper()
	log, err := Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close() })
	return log
}

func write(t *testing.T, log *Log, effects ...events.Event[events.EffectCommitted]) {
	t.Helper()
	if err := log.Write(t.Context(), effects); err != nil {
		t.Fatal(err)
	}
}

// An effect that is delivered twice, in batches that are cut differently, counts
// once: in merged parts, and in the daily counts, which do not merge.
func TestTwiceIsOnce(t *testing.T) {
	t.Parallel()
	dsn := clickhouseserver.DSN(t)
	log, conn := begin(t, Config{DSN: dsn}), connect(t, dsn)
	story := audittest.LogStory(scope.Scope{Project: "p", User: "u"}, 6, 1)
	for _, cut := range [][2]int{{0, 4}, {2, 6}, {0, 4}, {0, 6}, {5, 6}} {
		write(t, log, story[cut[0]:cut[1]]...)
	}
	exec(t, conn, "OPTIMIZE TABLE audit FINAL")
	exec(t, conn, "OPTIMIZE TABLE effects FINAL")
	for query, want := range map[string]uint64{
		"SELECT count() FROM audit FINAL":                                                                                                                     12,
		"SELECT count() FROM effects FINAL":                                                                                                                   6,
		"SELECT uniqExactMerge(deltas) FROM daily_deltas":                                                                                                     12,
		"SELECT uniqExactMerge(deltas) FROM daily_deltas WHERE kind = 'noop'":                                                                                 6,
		"SELECT uniqExactMerge(deltas) FROM daily_deltas WHERE rule = 'sleep'":                                                                                6,
		"SELECT uniqExactMerge(deltas) FROM daily_deltas WHERE day = '2026-03-01'":                                                                            12,
		"SELECT uniqExactMerge(deltas) FROM daily_deltas WHERE decided_by != 'rules@v1'":                                                                      0,
		"SELECT countIf(known_latency_ms = 0 AND apply_latency_ms = 0) FROM audit FINAL":                                                                      6,
		"SELECT count() FROM audit FINAL WHERE llm_model != '' OR llm_cost IS NOT NULL":                                                                       0,
		"SELECT uniq(_partition_id) FROM audit WHERE _partition_id LIKE '202603%'":                                                                            1,
		"SELECT countIf(JSONExtractUInt(after, 'revision') = revision) FROM audit FINAL":                                                                      6,
		"SELECT countIf(has(sources, concat('episode-', toString(revision)))) FROM effects AS e INNER JOIN audit AS a FINAL USING (project, scope, revision)": 12,
	} {
		if got := one[uint64](t, conn, query); got != want {
			t.Errorf("%s: %d, want %d", query, got, want)
		}
	}
}

// A DateTime64 column knows years and digits that a plain argument or a wild
// clock would lose.
func TestInstantsAreExact(t *testing.T) {
	t.Parallel()
	clickhouseserver.Each(t, func(t *testing.T, dsn func(testing.TB) string) {
		log := begin(t, Config{DSN: dsn(t)})
		s := scope.Scope{Project: "p", User: "u"}
		story := audittest.LogStory(s, 4, 1)
		applied := time.Date(2026, 3, 31, 23, 59, 59, 123456789, time.FixedZone("", 2*3600))
		wild := []time.Time{applied, time.Date(7, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC), {}}
		var want []audit.Record
		for i := range story {
			story[i].Data.CommittedAt = applied.Add(time.Duration(i))
			story[i].Data.Facts[0].EventTime = wild[i]
			want = append(want, audit.Records(story[i])...)
		}
		write(t, log, story...)
		read := func(q audit.Query) []audit.Record {
			t.Helper()
			q.Limit = 100
			got, err := log.Records(t.Context(), scope.Exactly(s), q)
			if err != nil {
				t.Fatal(err)
			}
			return got
		}
		if diff := cmp.Diff(want, read(audit.Query{})); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff(want[2:6], read(audit.Query{From: applied.Add(1), To: applied.Add(3)})); diff != "" {
			t.Errorf("between two nanoseconds: %s", diff)
		}
		if got := read(audit.Query{From: wild[1], To: wild[2]}); len(got) != 8 {
			t.Errorf("between the years 7 and 9999: %d records, want 8", len(got))
		}
	})
}

func TestReadsPages(t *testing.T) {
	t.Parallel()
	log := begin(t, Config{DSN: clickhouseserver.DSN(t)})
	const scopes = headPage + 1
	long := scope.Scope{Project: "p", User: "long"}
	write(t, log, audittest.LogStory(long, 2*effectPage, 1)...)
	var short []events.Event[events.EffectCommitted]
	for i := range scopes - 1 {
		short = append(short, audittest.LogStory(scope.Scope{Project: "p", User: fmt.Sprint(i)}, 1, uint64(1000+i))...)
	}
	write(t, log, short...)
	next := uint64(1)
	for e, err := range log.Effects(t.Context(), long, 0) {
		if err != nil || e.Data.Revision != next {
			t.Fatalf("revision %d, %v; want %d", e.Data.Revision, err, next)
		}
		next++
	}
	if next != 2*effectPage+1 {
		t.Errorf("%d effects, want %d", next-1, 2*effectPage)
	}
	seen := map[scope.Scope]bool{}
	err := log.Heads(t.Context(), func(h audit.Head) error {
		seen[h.Scope] = true
		return nil
	})
	if err != nil || len(seen) != scopes {
		t.Errorf("%d heads, %v; want %d", len(seen), err, scopes)
	}
}

// Many months come at once when memory is imported: more than the hundred
// partitions that a server takes in one batch if it is not told otherwise.
func TestManyMonths(t *testing.T) {
	t.Parallel()
	log := begin(t, Config{DSN: clickhouseserver.DSN(t)})
	story := audittest.LogStory(scope.Scope{Project: "p", User: "u"}, 110, 1)
	for i := range story {
		story[i].Data.CommittedAt = story[i].Data.CommittedAt.AddDate(0, -i, 0)
	}
	write(t, log, story...)
	if last, err := log.LastSequence(t.Context()); err != nil || last != 110 {
		t.Errorf("last sequence %d, %v", last, err)
	}
}

func TestRetention(t *testing.T) {
	t.Parallel()
	dsn := clickhouseserver.DSN(t)
	s := scope.Scope{Project: "p", User: "u"}
	story := audittest.LogStory(s, 2, 1)
	story[1].Data.CommittedAt = time.Now()
	conn := connect(t, dsn)
	log := begin(t, Config{DSN: dsn, Retention: time.Hour})
	write(t, log, story...)
	// A time to live that is set already rewrites no stored part.
	const mutations = "SELECT count() FROM system.mutations WHERE database = currentDatabase()"
	before := one[uint64](t, conn, mutations)
	begin(t, Config{DSN: dsn, Retention: time.Hour})
	if n := one[uint64](t, conn, mutations); n != before {
		t.Error("the same retention changed the table")
	}
	begin(t, Config{DSN: dsn, Retention: 24 * time.Hour})
	if n := one[uint64](t, conn, mutations); n == before {
		t.Error("another retention did not change the table")
	}
	exec(t, conn, "OPTIMIZE TABLE audit FINAL")
	records, err := log.Records(t.Context(), scope.Exactly(s), audit.Query{Limit: 10})
	if err != nil || len(records) != 2 || records[0].Revision != 2 {
		t.Errorf("records %v, %v; want those of revision 2", records, err)
	}
	if last, err := log.LastSequence(t.Context()); err != nil || last != 2 {
		t.Errorf("last sequence %d, %v: effects are kept", last, err)
	}
	const ttl = "SELECT position(engine_full, ' TTL ') > 0 FROM system.tables WHERE database = currentDatabase() AND name = 'audit'"
	if on := one[uint8](t, conn, ttl); on != 1 {
		t.Error("records have no time to live")
	}
	begin(t, Config{DSN: dsn})
	if on := one[uint8](t, conn, ttl); on != 0 {
		t.Error("records have a time to live still")
	}
}

func TestRetentionByReason(t *testing.T) {
	t.Parallel()
	dsns := map[audit.Log]string{}
	var mu sync.Mutex
	audittest.RunRetention(t, time.Now(), func(t *testing.T, keep audit.Retention) audit.Log {
		t.Helper()
		dsn := clickhouseserver.DSN(t)
		log := begin(t, Config{DSN: dsn, Told: keep})
		mu.Lock()
		defer mu.Unlock()
		dsns[log] = dsn
		return log
	}, func(t *testing.T, log audit.Log) {
		t.Helper()
		mu.Lock()
		dsn := dsns[log]
		mu.Unlock()
		exec(t, connect(t, dsn), "OPTIMIZE TABLE audit FINAL")
	})
}

// Times to live that are set already rewrite no stored part.
func TestRetentionIsSetOnce(t *testing.T) {
	t.Parallel()
	dsn := clickhouseserver.DSN(t)
	conn := connect(t, dsn)
	write(t, begin(t, Config{DSN: dsn}), audittest.LogStory(scope.Scope{Project: "p", User: "u"}, 2, 1)...)
	const mutations = "SELECT count() FROM system.mutations WHERE database = currentDatabase()"
	for _, cfg := range []Config{
		{Told: audit.DefaultRetention()}, {Retention: time.Hour, Told: audit.DefaultRetention()}, {Told: audit.Retention{Feedback: time.Hour}},
	} {
		cfg.DSN = dsn
		before := one[uint64](t, conn, mutations)
		begin(t, cfg)
		set := one[uint64](t, conn, mutations)
		if set == before {
			t.Errorf("%+v changed nothing", cfg)
		}
		begin(t, cfg)
		if n := one[uint64](t, conn, mutations); n != set {
			t.Errorf("%+v was set again; it is %s", cfg, one[string](t, conn, "SELECT engine_full FROM system.tables WHERE database = currentDatabase() AND name = 'audit'"))
		}
	}
}
