package redisdouble

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

// connect is a client of a server.
func connect(t testing.TB, url string) *goredis.Client {
	t.Helper()
	opts, err := goredis.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	opts.Protocol = 3
	client := goredis.NewClient(opts)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func mustDo(t testing.TB, c *goredis.Client, line string) any {
	t.Helper()
	reply, err := doLine(t, c, line)
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	return reply
}

func doLine(t testing.TB, c *goredis.Client, line string) (any, error) {
	t.Helper()
	args, err := parseCommand(line, script)
	if err != nil {
		t.Fatal(err)
	}
	send := make([]any, len(args))
	for i, a := range args {
		send[i] = a
	}
	return c.Do(t.Context(), send...).Result()
}

const schemaLine = "FT.CREATE i ON HASH PREFIX 1 k: SCHEMA k TAG CASESENSITIVE n NUMERIC SORTABLE t TEXT NOSTEM"

func TestWhatIsNotKnownIsRefused(t *testing.T) {
	t.Parallel()
	c := connect(t, Start(t))
	mustDo(t, c, schemaLine)
	mustDo(t, c, "HSET k:1 k e n 1 t word")
	for _, line := range []string{
		"GETRANGE a 0 1",
		"SELECT 1",
		"BLPOP a 1",
		"SUBSCRIBE a",
		"FLUSHALL",
		"FT.HYBRID i",
		"FT.PROFILE i",
		"FT.CREATE j ON JSON PREFIX 1 a: SCHEMA k TAG",
		"FT.CREATE j ON HASH PREFIX 1 a: SCHEMA k GEO",
		"FT.CREATE j ON HASH PREFIX 1 a: SCHEMA t TEXT",
		"FT.CREATE j ON HASH PREFIX 1 a: SCHEMA k TAG SORTABLE",
		"FT.CREATE j ON HASH PREFIX 1 a: SCHEMA v VECTOR FLAT 6 TYPE FLOAT64 DIM 2 DISTANCE_METRIC COSINE",
		"FT.SEARCH i @k:{e}",
		"FT.SEARCH i @t:word DIALECT 2",
		"FT.SEARCH i @t:wor* VERBATIM DIALECT 2",
		`FT.SEARCH i "(@k:{e})=>{$weight:2}" DIALECT 2`,
		"FT.SEARCH i @k:{e} SLOP 1 DIALECT 2",
		"FT.SEARCH i @k:{e} SCORER TFIDF DIALECT 2",
		`FT.AGGREGATE i @k:{e} FILTER "exists(@n)" DIALECT 2`,
		`FT.AGGREGATE i @k:{e} FILTER "@n=='a'" DIALECT 2`,
		`FT.AGGREGATE i @k:{e} APPLY "@n+1" AS m DIALECT 2`,
		"FT.AGGREGATE i @k:{e} GROUPBY 1 @k REDUCE AVG 1 @n AS m DIALECT 2",
		"FT.AGGREGATE i @k:{e} WITHCURSOR DIALECT 2",
		"CONFIG SET maxmemory 1",
	} {
		if reply, err := doLine(t, c, line); err == nil || !strings.HasPrefix(err.Error(), "REDISDOUBLE ") {
			t.Errorf("%s: %v, %v", line, reply, err)
		}
	}
	if _, err := doLine(t, c, `EVAL "return redis.call('FT._LIST')" 0`); err == nil || !strings.Contains(err.Error(), "REDISDOUBLE ") {
		t.Errorf("a search within a script: %v", err)
	}
	pipe := c.TxPipeline()
	in := pipe.Do(t.Context(), "FT._LIST")
	_, _ = pipe.Exec(t.Context()) // the command has its own error
	if in.Err() == nil || !strings.HasPrefix(in.Err().Error(), "REDISDOUBLE ") {
		t.Errorf("a search within a transaction: %v", in.Err())
	}
	mustDo(t, c, "HSET k:1 k e")
}

// TestManyClients: what a client wrote it finds, whatever the others do.
func TestManyClients(t *testing.T) {
	t.Parallel()
	url := Start(t)
	mustDo(t, connect(t, url), schemaLine)
	var group sync.WaitGroup
	for worker := range 16 {
		c := connect(t, url)
		group.Go(func() {
			for i := range 25 {
				key := fmt.Sprintf("k:%d-%d", worker, i)
				write := []any{"EVAL", "return redis.call('HSET', KEYS[1], 'k', ARGV[1], 'n', ARGV[2])", 1, key, worker, i}
				if err := c.Do(t.Context(), write...).Err(); err != nil {
					t.Error(err)
				}
				found, err := c.Do(t.Context(), "FT.SEARCH", "i", fmt.Sprintf("@k:{%d} @n:[%d %d]", worker, i, i), "NOCONTENT", "DIALECT", 2).Result()
				if err != nil || !strings.Contains(fmt.Sprint(found), key) {
					t.Errorf("search of %s: %v, %v", key, found, err)
				}
			}
		})
	}
	group.Wait()
	reply, _ := mustDo(t, connect(t, url), "FT.SEARCH i * LIMIT 0 0 DIALECT 2").(map[any]any)
	if reply["total_results"] != int64(16*25) {
		t.Errorf("%v rows", reply["total_results"])
	}
}

// TestKeysEnd: a key that ends is gone from where it is read and from the index.
func TestKeysEnd(t *testing.T) {
	t.Parallel()
	c := connect(t, Start(t))
	mustDo(t, c, schemaLine)
	mustDo(t, c, "HSET k:1 k e")
	mustDo(t, c, "HSET k:2 k e")
	mustDo(t, c, "PEXPIRE k:1 20")
	mustDo(t, c, "PEXPIRE k:2 3600000")
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for range 1000 {
		reply, _ := mustDo(t, c, "FT.SEARCH i @k:{e} LIMIT 0 0 DIALECT 2").(map[any]any)
		if reply["total_results"] == int64(1) {
			if n := mustDo(t, c, "EXISTS k:1"); n != int64(0) {
				t.Error("the key is there")
			}
			return
		}
		<-tick.C
	}
	t.Error("the row is found for ever")
}

func TestTimeIsUp(t *testing.T) {
	t.Parallel()
	e := emptyEngine(t)
	for i := range 1000 {
		e.update(fmt.Sprint("k:", i), map[string]string{"k": "e", "n": "1"})
	}
	var now time.Time
	e.now = func() time.Time {
		now = now.Add(time.Second)
		return now
	}
	for want, timeout := range map[string]string{"[" + tooLate + "]": "2500", "[]": "1000000"} {
		reply, err := e.aggregate([]string{"i", "@k:{e}", "SORTBY", "1", "@n", "TIMEOUT", timeout, "DIALECT", "2"})
		if err != nil {
			t.Fatal(err)
		}
		if answer, _ := reply.(pairs); fmt.Sprint(answer[len(answer)-1]) != want {
			t.Errorf("after %s ms: warnings %v, want %s", timeout, answer[len(answer)-1], want)
		}
	}
}

// emptyEngine has one index, i.
func emptyEngine(t testing.TB) *engine {
	t.Helper()
	e := newEngine(func([]string, func(string, map[string]string)) {}, func([]string) {})
	create := "i ON HASH PREFIX 1 k: SCHEMA k TAG n NUMERIC SORTABLE t TEXT NOSTEM v VECTOR FLAT 6 TYPE FLOAT32 DIM 1 DISTANCE_METRIC COSINE"
	if _, err := e.create(strings.Fields(create)); err != nil {
		t.Fatal(err)
	}
	return e
}

func TestServe(t *testing.T) {
	t.Parallel()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	if err := Serve(t.Context(), addr); err == nil {
		t.Error("served on an address that is taken")
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- Serve(ctx, addr) }()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !answers(t, addr) {
		select {
		case err := <-served:
			t.Fatal(errors.Join(err, errors.New("it serves no more")))
		case <-tick.C:
		}
	}
	mustDo(t, connect(t, "redis://"+addr), schemaLine)
	stop()
	if err := <-served; err != nil {
		t.Error(err)
	}
	if answers(t, addr) {
		t.Error("it serves on")
	}
}

func answers(t *testing.T, addr string) bool {
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", addr)
	if err == nil {
		_ = conn.Close()
	}
	return err == nil
}

// FuzzSearch: no query and no filter brings the double down.
func FuzzSearch(f *testing.F) {
	f.Add("@k:{$p0|b} -(@n:[(1 +inf] | @t:(w x)) @n>=3", "@n>1 || (@n==1 && @k<'x')")
	f.Add("(@k:{\"a b\"})=>[KNN 3 @v $v HYBRID_POLICY ADHOC_BF AS distance]", "@n!=-1.5")
	f.Add("* => [", "(((")
	e := emptyEngine(f)
	e.update("k:1", map[string]string{"k": "a,b", "n": "1", "t": "w x", "v": "\x00\x00\x80?"})
	f.Fuzz(func(t *testing.T, query, filter string) {
		for _, args := range [][]string{
			{"i", query, "VERBATIM", "PARAMS", "4", "p0", "a", "v", "\x00\x00\x80?", "DIALECT", "2"},
			{"i", "*", "FILTER", filter, "SORTBY", "1", "@n", "DIALECT", "2"},
		} {
			search := e.search
			if args[1] == "*" {
				search = e.aggregate
			}
			if reply, err := search(args); (reply == nil) == (err == nil) {
				t.Errorf("%q: %v, %v", args, reply, err)
			}
		}
	})
}
