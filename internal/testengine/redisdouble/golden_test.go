package redisdouble

import (
	"context"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	goredis "github.com/redis/go-redis/v9"
	"go.uber.org/goleak"
)

var update = flag.Bool("update", false, "record the answers of the server that TEST_REDIS_URL names")

func TestMain(m *testing.M) { goleak.VerifyTestMain(Tests{m}) }

func script(file string) (string, error) {
	raw, err := os.ReadFile(filepath.Join("..", "..", "store", "redis", "scripts", file))
	return string(raw), err
}

// TestAnswersAreTheServers sends what testdata holds to the double and compares
// with what the real server answered; with TEST_REDIS_URL, to that server.
func TestAnswersAreTheServers(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) < 5 {
		t.Fatalf("%d transcripts, %v", len(files), err)
	}
	if *update && Real() == "" {
		t.Fatal("TEST_REDIS_URL names no server to record")
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			t.Parallel()
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := newTranscript(t).play(string(raw))
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if diff := cmp.Diff(strings.Split(string(raw), "\n"), strings.Split(got, "\n")); diff != "" {
				t.Errorf("the answers differ from the recorded ones (-recorded +now):\n%s", diff)
			}
		})
	}
}

// transcript is a session with a server, in a namespace of its own.
type transcript struct {
	*testing.T
	conn      *goredis.Conn
	namespace string
}

func newTranscript(t *testing.T) *transcript {
	opts, err := goredis.ParseURL(URL(t))
	if err != nil {
		t.Fatal(err)
	}
	opts.Protocol = 3
	client := goredis.NewClient(opts)
	s := &transcript{T: t, conn: client.Conn(), namespace: fmt.Sprintf("rec%07d-%s", os.Getpid(), filepath.Base(t.Name()))}
	t.Cleanup(func() {
		s.clean()
		_ = s.conn.Close()
		_ = client.Close()
	})
	return s
}

func (s *transcript) clean() {
	for _, ix := range list(s.do("FT._LIST")) {
		s.do("FT.DROPINDEX", ix)
	}
	for _, key := range list(s.do("SCAN", "0", "MATCH", s.namespace+"*", "COUNT", "1000")) {
		s.do("DEL", key)
	}
}

func list(reply any) (out []string) {
	values, _ := reply.([]any)
	for _, v := range values {
		out = append(out, fmt.Sprint(v))
	}
	return out
}

// play sends each command of a transcript and returns it with the answers in
// place of those it had.
func (s *transcript) play(text string) string {
	var out strings.Builder
	answered := false
	for line := range strings.Lines(text) {
		command, is := strings.CutPrefix(line, "> ")
		switch {
		case is:
			args, err := parseCommand(strings.ReplaceAll(command, "NS:", s.namespace+":"), script)
			if err != nil {
				s.Fatal(err)
			}
			out.WriteString(line)
			out.WriteString(strings.ReplaceAll(show(s.do(args...), ""), s.namespace+":", "NS:") + "\n")
			answered = true
		case strings.HasPrefix(line, "#") || strings.TrimSpace(line) == "":
			out.WriteString(line)
			answered = false
		case !answered:
			s.Fatalf("line %q follows no command", line)
		}
	}
	return out.String()
}

// do sends a command and brings the answer to a form that does not change from
// one time, or one server, to the next.
func (s *transcript) do(args ...string) any {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	send := make([]any, len(args))
	for i, a := range args {
		send[i] = a
	}
	reply, err := s.conn.Do(ctx, send...).Result()
	if err != nil && err != goredis.Nil { //nolint:errorlint // as the driver has it
		if strings.HasPrefix(err.Error(), "Syntax error at offset") {
			return failure("Syntax error")
		}
		if strings.Contains(err.Error(), "WRONGTYPE") && strings.HasPrefix(args[0], "EVAL") {
			return failure("WRONGTYPE") // the text around it differs
		}
		return failure(err.Error())
	}
	switch args[0] {
	case "FT.CREATE", "FT.ALTER":
		s.awaitIndex(args[1])
	case "SCAN":
		return s.scanOn(ctx, reply, args)
	case "TIME":
		return len(list(reply))
	case "BGSAVE", "BGREWRITEAOF": // one that is under way changes the text
		return strings.HasPrefix(fmt.Sprint(reply), "Background ")
	case "INFO":
		return slices.DeleteFunc(strings.Split(fmt.Sprint(reply), "\r\n"), func(line string) bool {
			name, _, _ := strings.Cut(line, ":")
			return !slices.Contains([]string{"maxmemory_policy", "aof_enabled", "role", "loading"}, name)
		})
	}
	return s.steady(args, reply)
}

// scanOn goes on with a SCAN to its end.
func (s *transcript) scanOn(ctx context.Context, reply any, args []string) any {
	var keys []any
	for {
		parts, _ := reply.([]any)
		if len(parts) != 2 {
			s.Fatalf("SCAN answered with %v", reply)
		}
		found, _ := parts[1].([]any)
		keys = append(keys, found...)
		if parts[0] == "0" {
			return sorted(keys)
		}
		send := []any{"SCAN", parts[0]}
		for _, a := range args[2:] {
			send = append(send, a)
		}
		var err error
		if reply, err = s.conn.Do(ctx, send...).Result(); err != nil {
			s.Fatal(err)
		}
	}
}

func (s *transcript) awaitIndex(name string) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for range 1000 {
		info, ok := s.do("FT.INFO", name).(map[any]any)
		if !ok || info["indexing"] == int64(0) {
			return
		}
		<-tick.C
	}
	s.Fatalf("index %s is never whole", name)
}

// told is what of FT.INFO the double answers.
var told = []string{"index_name", "num_docs", "hash_indexing_failures", "indexing", "percent_indexed", "Index Errors", "attributes",
	"indexing failures", "last indexing error", "last indexing error key", "identifier", "attribute", "type"}

func (s *transcript) steady(args []string, reply any) any {
	switch args[0] {
	case "FT.INFO":
		return only(told, reply)
	case "FT._LIST":
		all, _ := reply.([]any)
		return sorted(slices.DeleteFunc(slices.Clone(all), func(name any) bool { return !strings.HasPrefix(fmt.Sprint(name), s.namespace) }))
	case "EVAL", "EVALSHA", "EXEC":
		return inPairs(reply)
	case "SMEMBERS":
		all, _ := reply.([]any)
		return sorted(all)
	case "FT.SEARCH", "FT.AGGREGATE":
		m, _ := reply.(map[any]any)
		if slices.Contains(args, "FILTER") {
			delete(m, "total_results") // before the filter in RediSearch 8.0, behind it in 8.4
		}
		rows, _ := m["results"].([]any)
		for _, r := range rows {
			row, _ := r.(map[any]any)
			if score, ok := row["score"].(float64); ok {
				row["score"] = strconv.FormatFloat(score, 'g', 8, 64)
			}
			shown, _ := row["extra_attributes"].(map[any]any)
			if far, ok := shown["distance"]; ok {
				x, _ := strconv.ParseFloat(fmt.Sprint(far), 64)
				shown["distance"] = strconv.FormatFloat(math.Abs(x), 'f', 5, 64)
			}
		}
		if slices.Contains(args, "GROUPBY") {
			m["results"] = sorted(rows)
		}
	}
	return reply
}

// only keeps some of the entries of maps.
func only(names []string, reply any) any {
	switch reply := reply.(type) {
	case map[any]any:
		kept := map[any]any{}
		for name, v := range reply {
			if slices.Contains(names, fmt.Sprint(name)) {
				kept[name] = only(names, v)
			}
		}
		return kept
	case []any:
		kept := make([]any, len(reply))
		for i, v := range reply {
			kept[i] = only(names, v)
		}
		return kept
	}
	return reply
}

// inPairs sorts lists that may be hashes, which scripts return field by field.
func inPairs(reply any) any {
	values, ok := reply.([]any)
	if !ok {
		return reply
	}
	for i, v := range values {
		values[i] = inPairs(v)
	}
	if len(values)%2 == 1 || slices.ContainsFunc(values, func(v any) bool { _, is := v.(string); return !is }) {
		return values
	}
	pairs := map[any]any{}
	for i := 0; i < len(values); i += 2 {
		pairs[values[i]] = values[i+1]
	}
	return pairs
}

func sorted(list []any) []any {
	slices.SortFunc(list, func(a, b any) int { return strings.Compare(show(a, ""), show(b, "")) })
	return list
}

// failure is an answer that is an error.
type failure string

// show writes an answer with its types: doubles after a comma, as the protocol
// has them.
func show(v any, indent string) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case failure:
		return "error: " + string(v)
	case error:
		return "error: " + v.Error()
	case string:
		return strconv.Quote(v)
	case float64:
		return "," + strconv.FormatFloat(v, 'g', -1, 64)
	case []string:
		return strconv.Quote(strings.Join(v, " "))
	case []any:
		return block("[", "]", indent, v, func(i int, in string) string { return show(v[i], in) })
	case map[any]any:
		var keys []any
		for k := range v {
			keys = append(keys, k)
		}
		sorted(keys)
		return block("{", "}", indent, keys, func(i int, in string) string { return fmt.Sprint(keys[i]) + ": " + show(v[keys[i]], in) })
	}
	return fmt.Sprint(v)
}

// block is a list in one line, or, where that is long, in one a member.
func block(begin, end, indent string, members []any, member func(i int, indent string) string) string {
	short := make([]string, len(members))
	long := make([]string, len(members))
	for i := range members {
		short[i], long[i] = member(i, ""), member(i, indent+"  ")
	}
	if one := begin + strings.Join(short, ", ") + end; len(one) < 120 && !strings.Contains(one, "\n") {
		return one
	}
	return begin + "\n" + indent + "  " + strings.Join(long, ",\n"+indent+"  ") + "\n" + indent + end
}
