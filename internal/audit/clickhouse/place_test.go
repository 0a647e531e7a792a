package clickhouse

import (
	"io/fs"
	"regexp"
	"strings"
	"testing"

	"palimpsest/internal/testengine/clickhouseserver"
)

// schema is every statement of the migrations, as a place has it.
func schema(t *testing.T, at place) (statements []string) {
	t.Helper()
	scripts, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range scripts {
		script, err := fs.ReadFile(migrations, name)
		if err != nil {
			t.Fatal(err)
		}
		for statement := range strings.SplitSeq(strings.TrimSpace(string(script)), ";\n") {
			statements = append(statements, at.statement(strings.TrimSuffix(statement, ";")))
		}
	}
	return statements
}

var (
	comment = regexp.MustCompile(`(?m)^--.*\n`)
	made    = regexp.MustCompile("^(?:CREATE (?:TABLE|MATERIALIZED VIEW) IF NOT EXISTS|ALTER TABLE) \\w+ ON CLUSTER `eu-1`\\s")
	engine  = regexp.MustCompile(`ENGINE = (\w+)(\('/clickhouse/tables/\{shard\}/\{database\}/\{table\}', '\{replica\}'\))?`)
)

// TestOnAClusterEverythingIsReplicated has the engine parse the statements for a
// cluster. It cannot run them: libchdb has no Keeper.
func TestOnAClusterEverythingIsReplicated(t *testing.T) {
	t.Parallel()
	conn := connect(t, clickhouseserver.DSN(t))
	tables := 0
	for _, statement := range schema(t, place{cluster: "eu-1"}) {
		if !made.MatchString(strings.TrimSpace(comment.ReplaceAllString(statement, ""))) {
			t.Errorf("not on every server: %s", statement)
		}
		if found := engine.FindStringSubmatch(statement); found != nil {
			tables++
			if !strings.HasPrefix(found[1], "Replicated") || found[2] == "" {
				t.Errorf("engine %s", found[0])
			}
		}
		if parsed := one[string](t, conn, "SELECT formatQuery("+quoted(statement)+")"); !strings.Contains(parsed, "ON CLUSTER `eu-1`") {
			t.Errorf("the engine reads %s", parsed)
		}
	}
	if tables != 4 {
		t.Errorf("%d tables", tables)
	}
	for _, statement := range schema(t, place{}) {
		if strings.Contains(statement, "CLUSTER") || strings.Contains(statement, "Replicated") || strings.Contains(statement, "everywhere") {
			t.Errorf("on one server: %s", statement)
		}
	}
}

func quoted(text string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(text) + "'"
}

// TestClusterIsLookedAtFirst: a cluster that would not keep a whole copy on each
// server is refused, and while a server is away nothing is created on the others.
func TestClusterIsLookedAtFirst(t *testing.T) {
	t.Parallel()
	server := clickhouseserver.Own(t) // whose clusters are known
	alone := server.DSN("native", "alone")
	conn := connect(t, alone)
	for cluster, says := range map[string]string{
		"nowhere": `has no cluster "nowhere"`,
		"divided": `cluster "divided" has 2 shards`,
		"a`b":     "cluster \"a`b\" holds more",
		"copies":  "made for one server",
	} {
		if _, err := Open(t.Context(), Config{DSN: alone, Cluster: cluster}); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", cluster, err, says)
		}
	}
	if _, err := Open(t.Context(), Config{DSN: server.DSN("native", "together"), Cluster: "copies"}); err == nil {
		t.Error("a log on servers that are away opens")
	}
	if n := one[uint64](t, conn, "SELECT count() FROM system.databases WHERE name = 'together'"); n != 0 {
		t.Error("one server keeps a log for itself")
	}
}
