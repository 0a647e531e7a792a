package e2e

import (
	"database/sql"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	_ "modernc.org/sqlite" // to make a directory look newer than it is
)

// refused wants a command to fail with a code and one clear line on stderr.
func refused(t testing.TB, code int, words string, stdin string, args ...string) {
	t.Helper()
	stdout, stderr, got := run(t, strings.NewReader(stdin), args...)
	line, rest, _ := strings.Cut(stderr, "\n")
	if code == 2 { // a hint where to look follows
		rest = strings.TrimPrefix(rest, "Run \"palimpsest --help\" for the commands.\n")
	}
	if got != code || rest != "" || !strings.HasPrefix(line, "palimpsest: ") || !strings.Contains(line, words) {
		t.Errorf("%v: exit %d, want %d and one line with %q; it said %q", args, got, code, words, stderr)
	}
	if stdout != "" && !(args[0] == "up" && strings.Contains(stdout, " starts.\n")) {
		t.Errorf("%v: stdout %q", args, stdout)
	}
}

func up(data string, more ...string) []string {
	return append([]string{"up", "--data", data, "--http", "127.0.0.1:0", "--nats", "127.0.0.1:0"}, more...)
}

func taken(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l.Addr().String()
}

// TestMisuseOfUp starts the program where it cannot run.
func TestMisuseOfUp(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("not a directory"), 0o600); err != nil {
		t.Fatal(err)
	}
	settings := filepath.Join(dir, "settings.yaml")
	if err := os.WriteFile(settings, []byte("http:\n  lisen: 127.0.0.1:0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	address := taken(t)
	refused(t, 1, address, "", append(up(filepath.Join(dir, "a")), "--http", address)...)
	refused(t, 1, address, "", append(up(filepath.Join(dir, "b")), "--nats", address)...)
	refused(t, 1, file, "", up(file)...)
	refused(t, 1, file, "", up(filepath.Join(file, "below"))...)
	refused(t, 1, "/proc/palimpsest", "", up("/proc/palimpsest")...)
	refused(t, 1, "nowhere", "", up(dir, "--http", "nowhere")...)
	refused(t, 1, "lisen", "", up(dir, "--config", settings)...)
	refused(t, 1, "missing.yaml", "", up(dir, "--config", filepath.Join(dir, "missing.yaml"))...)
	refused(t, 2, "--flavour", "", up(dir, "--flavour", "vanilla")...)
	refused(t, 2, "frobnicate", "", "frobnicate")
	alone := filepath.Join(dir, "alone.yaml")
	if err := os.WriteFile(alone, []byte("memory: sqlite\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, service := range []string{"ingest", "scheduler", "extractor", "decider", "consolidator", "query"} {
		refused(t, 1, "palimpsest up", "", service, "--config", alone)
	}
}

// TestMisuseByEnvironment sets what is not there to be set.
func TestMisuseByEnvironment(t *testing.T) {
	for name, words := range map[string]string{
		"PALIMPSEST_HTTP_LISEN": "PALIMPSEST_HTTP_LISEN",
		"PALIMPSEST_LOG_LEVEL":  "log.level",
		"PALIMPSEST_MEMORY":     "memory",
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(name, "loud")
			refused(t, 1, words, "", up(t.TempDir())...)
		})
	}
}

// TestMisuseOfADirectory shares one between two programs, and gives one to a
// program older than it.
func TestMisuseOfADirectory(t *testing.T) {
	t.Parallel()
	i := start(t, t.TempDir())
	i.say(person("ann"), "I live in Oslo")
	refused(t, 3, i.data, "", up(i.data)...)
	i.settled(of(person("ann")), 1)
	if err := i.stop(); err != nil {
		t.Fatalf("exit: %v\n%s", err, i.stderr)
	}
	for _, name := range []string{"memory.db", "audit.db"} {
		path := filepath.Join(i.data, name)
		restore := newer(t, path)
		refused(t, 1, "newer version", "", up(i.data)...)
		restore()
	}
	i.begin()
	wantOne(t, i.facts(of(person("ann"))), "Oslo")
}

// newer marks a database as written by a later version, until undone.
func newer(t *testing.T, path string) (undo func()) {
	t.Helper()
	set := func(version int) (old int) {
		db, err := sql.Open("sqlite", path)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		if err := db.QueryRow("PRAGMA user_version").Scan(&old); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if _, err := db.Exec(fmt.Sprintf("PRAGMA user_version = %d", version)); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		return old
	}
	old := set(9999)
	return func() { set(old) }
}

// TestMisuseOfPublish publishes to no server, or without a user, and names files that hold
// no key.
func TestMisuseOfPublish(t *testing.T) {
	t.Parallel()
	nobody := "127.0.0.1:1" // a port that needs privileges and has no service
	refused(t, 1, nobody, "hello\n", "publish", "--user", "ann", "--nats", "nats://"+nobody)
	refused(t, 1, nobody, "", "search", "hello", "--all-users", "--server", "http://"+nobody)
	refused(t, 2, "--role", "hello\n", "publish", "--user", "ann", "--role", "boss")
	refused(t, 2, "text", "", "search")
	for text, words := range map[string]string{"\n": "is empty", "pal_a\npal_b\n": "more than one word", "\x89PNG": "more than one word"} {
		key := filepath.Join(t.TempDir(), "key")
		if err := os.WriteFile(key, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		refused(t, 1, words, "", "search", "hello", "--all-users", "--server", "http://"+nobody, "--api-key-file", key)
	}
}

// publishNamesTheLine: an error names the refused line, after acknowledged ones.
func publishNamesTheLine(t *testing.T, i *instance) {
	for words, stdin := range map[string]string{
		"line 1: scope":     "hello\n",
		"line 2: ":          `{"content": "x", "user": "ann"}` + "\n" + `{"content": ` + "\n",
		"line 1: content":   `{"content": "", "user": "ann"}`,
		"line 1: role":      `{"content": "x", "user": "ann", "role": "boss"}`,
		"line 1: timestamp": `{"content": "x", "user": "ann", "timestamp": "noon"}`,
		"line 1: metadata":  `{"content": "x", "user": "ann", "metadata": 7}`,
		"line 1: user":      `{"content": "x", "user": "` + strings.Repeat("x", 300) + `"}`,
	} {
		refused(t, 1, words, stdin, i.remote("publish", "--nats", i.NATS)...)
	}
	i.settled(of(i.person("ann")), 1) // the line before the bad one
	if letters := i.buried(0); len(letters) > 0 {
		t.Errorf("dead letters: %+v", letters)
	}
}
