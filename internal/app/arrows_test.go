package app

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// layer is a part of the module and the packages of Palimpsest that it may import.
// A layer imports only layers that come after it in the list.
type layer struct {
	path string // prefix of its import paths
	may  []string
}

var contracts = []string{
	"palimpsest/internal/pipeline", "palimpsest/internal/cursor", "palimpsest/internal/extract", "palimpsest/internal/decide",
	"palimpsest/internal/retrieval", "palimpsest/internal/graph", "palimpsest/internal/retrieval/timex", "palimpsest/internal/retrieval/assembly", "palimpsest/internal/store", "palimpsest/internal/audit",
	"palimpsest/internal/embed", "palimpsest/internal/llm", "palimpsest/internal/memory", "palimpsest/internal/filter", "palimpsest/internal/lex", "palimpsest/internal/rules",
	"palimpsest/internal/telemetry", "palimpsest/internal/httpserver", "palimpsest/internal/failpoint",
	"palimpsest/internal/mcp", "palimpsest/internal/mem0", "palimpsest/internal/auth",
}

var wire = []string{"palimpsest/pkg/api", "palimpsest/pkg/events", "palimpsest/pkg/scope"}

func below(more ...string) []string {
	return slices.Concat(wire, []string{"palimpsest/internal/poll"}, more)
}

var layers = []layer{
	{"palimpsest/cmd/palimpsest", []string{"palimpsest/internal/cli"}},
	{"palimpsest/internal/cli", below("palimpsest/internal/app", "palimpsest/internal/version", "palimpsest/internal/background", "palimpsest/internal/config", "palimpsest/internal/doctor", "palimpsest/internal/engine", "palimpsest/internal/heap", "palimpsest/internal/auth", "palimpsest/internal/filter", "palimpsest/internal/rules", "palimpsest/internal/recovery", "palimpsest/internal/eval", "palimpsest/internal/erasure", "palimpsest/internal/mcp", "palimpsest/internal/assistant", "palimpsest/internal/transcript", "palimpsest/internal/terminal", "palimpsest/internal/topology", "palimpsest/internal/bench", "palimpsest/internal/bench/bare", "palimpsest/internal/chaos", "palimpsest/internal/memory", "palimpsest/pkg/client")},
	{"palimpsest/internal/app", []string{"palimpsest/"}},
	{"palimpsest/examples/consumer", wire},
	{"palimpsest/examples/chatbot", append([]string{"palimpsest/pkg/client"}, wire...)},
	{"palimpsest/examples/quickstart", []string{"palimpsest/pkg/"}},
	{"palimpsest/internal/readiness", append(below("palimpsest/services/scheduler"), contracts...)},
	{"palimpsest/internal/erasure/streams", below("palimpsest/internal/erasure", "palimpsest/internal/topology", "palimpsest/internal/failpoint")},
	{"palimpsest/internal/erasure", append(below("palimpsest/services/query", "palimpsest/internal/topology"), contracts...)},
	{"palimpsest/internal/recovery", append(below("palimpsest/services/", "palimpsest/pkg/client"), contracts...)},
	{"palimpsest/internal/transfer", below("palimpsest/internal/recovery", "palimpsest/internal/memory", "palimpsest/internal/tail", "palimpsest/internal/topology")},
	{"palimpsest/services/", append(below(), contracts...)},
	{"palimpsest/internal/chaos", below("palimpsest/pkg/client", "palimpsest/internal/broker", "palimpsest/internal/topology", "palimpsest/internal/store", "palimpsest/internal/audit", "palimpsest/internal/cursor", "palimpsest/internal/pipeline", "palimpsest/internal/memory")},

	{"palimpsest/internal/bench", below("palimpsest/services/ingest", "palimpsest/internal/store", "palimpsest/internal/retrieval", "palimpsest/internal/embed", "palimpsest/pkg/client")},
	{"palimpsest/internal/bench/bare", []string{"palimpsest/internal/bench/usage", "palimpsest/internal/lex"}},
	{"palimpsest/internal/eval", below("palimpsest/internal/extract", "palimpsest/internal/memory", "palimpsest/internal/lex", "palimpsest/internal/store", "palimpsest/internal/retrieval", "palimpsest/internal/embed", "palimpsest/pkg/client")},
	{"palimpsest/internal/broker", below("palimpsest/internal/topology", "palimpsest/internal/failpoint")},
	{"palimpsest/internal/doctor", below("palimpsest/internal/engine", "palimpsest/internal/broker", "palimpsest/internal/topology", "palimpsest/internal/llm", "palimpsest/internal/embed", "palimpsest/internal/store")},
	{"palimpsest/internal/topology", below()},
	{"palimpsest/internal/store/redis", below("palimpsest/internal/filter", "palimpsest/internal/cursor", "palimpsest/internal/store", "palimpsest/internal/memory", "palimpsest/internal/lex", "palimpsest/internal/embed")},
	{"palimpsest/internal/store/sqlite", below("palimpsest/internal/filter", "palimpsest/internal/cursor", "palimpsest/internal/store", "palimpsest/internal/memory", "palimpsest/internal/lex", "palimpsest/internal/embed", "palimpsest/internal/embed/kernel", "palimpsest/internal/sqlitefile")},
	{"palimpsest/internal/audit/journal", below("palimpsest/internal/audit", "palimpsest/internal/tail", "palimpsest/internal/topology")},
	{"palimpsest/internal/audit/sqlite", below("palimpsest/internal/filter", "palimpsest/internal/cursor", "palimpsest/internal/audit", "palimpsest/internal/memory", "palimpsest/internal/sqlitefile")},
	{"palimpsest/internal/audit/clickhouse", below("palimpsest/internal/filter", "palimpsest/internal/cursor", "palimpsest/internal/audit", "palimpsest/internal/memory")},
	{"palimpsest/internal/extract/rulepack", below("palimpsest/internal/extract", "palimpsest/internal/memory", "palimpsest/internal/lex")},
	{"palimpsest/internal/extract/rulepack/pattern", below("palimpsest/internal/extract/rulepack/grammar")},
	{"palimpsest/internal/extract/rulepack/grammar", below()},
	{"palimpsest/internal/extract/model", below("palimpsest/internal/extract", "palimpsest/internal/llm", "palimpsest/internal/memory")},
	{"palimpsest/internal/decide/model", below("palimpsest/internal/decide", "palimpsest/internal/llm", "palimpsest/internal/memory", "palimpsest/internal/lex")},
	{"palimpsest/internal/decide/deterministic", below("palimpsest/internal/decide", "palimpsest/internal/memory", "palimpsest/internal/lex")},
	{"palimpsest/internal/embed/local", below("palimpsest/internal/embed", "palimpsest/internal/lex")},
	{"palimpsest/internal/embed/static", below("palimpsest/internal/embed", "palimpsest/internal/embed/wordpiece", "palimpsest/internal/embed/safetensors")},
	{"palimpsest/internal/embed/transformer", below("palimpsest/internal/embed", "palimpsest/internal/embed/kernel", "palimpsest/internal/embed/wordpiece", "palimpsest/internal/embed/safetensors")},
	{"palimpsest/internal/embed/openai", below("palimpsest/internal/embed", "palimpsest/internal/llm")},
	{"palimpsest/internal/embed/kernel", nil},
	{"palimpsest/internal/embed/wordpiece", nil},
	{"palimpsest/internal/llm/openai", below("palimpsest/internal/llm")},
	{"palimpsest/internal/llm/anthropic", below("palimpsest/internal/llm")},
	{"palimpsest/internal/llm/gemini", below("palimpsest/internal/llm")},
	{"palimpsest/internal/embed/safetensors", nil},

	{"palimpsest/internal/graph", below("palimpsest/internal/memory")},
	{"palimpsest/internal/retrieval", below("palimpsest/internal/graph", "palimpsest/internal/filter", "palimpsest/internal/store", "palimpsest/internal/embed", "palimpsest/internal/memory", "palimpsest/internal/lex")},
	{"palimpsest/internal/telemetry", below("palimpsest/internal/pipeline", "palimpsest/internal/store", "palimpsest/internal/audit", "palimpsest/internal/embed", "palimpsest/internal/memory")},
	{"palimpsest/internal/pipeline", below("palimpsest/internal/cursor", "palimpsest/internal/tail", "palimpsest/internal/failpoint")},
	{"palimpsest/internal/extract", below("palimpsest/internal/memory", "palimpsest/internal/lex")},
	{"palimpsest/internal/decide", below("palimpsest/internal/memory", "palimpsest/internal/lex")},
	{"palimpsest/internal/store", below("palimpsest/internal/cursor", "palimpsest/internal/embed", "palimpsest/internal/memory", "palimpsest/internal/filter")},
	{"palimpsest/internal/audit", below("palimpsest/internal/filter", "palimpsest/internal/cursor", "palimpsest/internal/memory")},
	{"palimpsest/internal/embed", below()},
	{"palimpsest/internal/llm", below()},
	{"palimpsest/internal/mcp", below("palimpsest/pkg/client", "palimpsest/internal/httpserver")},
	{"palimpsest/internal/assistant", []string{"palimpsest/pkg/api"}},
	{"palimpsest/internal/mem0", below("palimpsest/pkg/client", "palimpsest/internal/auth", "palimpsest/internal/httpserver", "palimpsest/internal/filter", "palimpsest/internal/lex")},
	{"palimpsest/internal/httpserver", below("palimpsest/internal/auth")},
	{"palimpsest/internal/auth/bucket", below("palimpsest/internal/auth", "palimpsest/internal/tail", "palimpsest/internal/topology")},
	{"palimpsest/internal/auth", below("palimpsest/internal/cursor")},
	{"palimpsest/internal/call", below("palimpsest/internal/background", "palimpsest/internal/terminal", "palimpsest/pkg/client")},
	{"palimpsest/internal/engine", below("palimpsest/internal/store", "palimpsest/internal/audit", "palimpsest/internal/broker")},
	{"palimpsest/internal/greeting", below("palimpsest/internal/auth")},
	{"palimpsest/internal/config", nil},
	{"palimpsest/internal/background", nil},
	{"palimpsest/internal/version", nil},
	{"palimpsest/internal/heap", nil},
	{"palimpsest/internal/terminal", nil},
	{"palimpsest/internal/transcript", nil},
	{"palimpsest/internal/tail", nil},
	{"palimpsest/internal/poll", nil},
	{"palimpsest/internal/cursor", nil},
	{"palimpsest/internal/failpoint", nil},
	{"palimpsest/internal/sqlitefile", nil},
	{"palimpsest/internal/filter", below("palimpsest/internal/lex")},
	{"palimpsest/internal/rules", below("palimpsest/internal/memory", "palimpsest/internal/filter", "palimpsest/internal/lex")},
	{"palimpsest/internal/memory", below("palimpsest/internal/lex", "palimpsest/internal/filter")},
	{"palimpsest/internal/lex", nil},

	{"palimpsest/pkg/client", []string{"palimpsest/pkg/api", "palimpsest/pkg/scope"}},
	{"palimpsest/pkg/api", []string{"palimpsest/pkg/scope"}},
	{"palimpsest/pkg/events", []string{"palimpsest/pkg/scope"}},
	{"palimpsest/pkg/scope", nil},
}

// suite reports whether a package belongs to tests alone. It may import what it
// tests, and no package of the product imports it.
func suite(path string) bool {
	return strings.HasSuffix(path, "test") || within(path, "palimpsest/internal/testengine/") || within(path, "palimpsest/internal/e2e")
}

func TestArrowsRunDown(t *testing.T) {
	t.Parallel()
	for path, imports := range importGraph(t) {
		if suite(path) {
			continue
		}
		l, ok := layerOf(path)
		if !ok {
			t.Errorf("%s is in no layer", path)
			continue
		}
		for _, imported := range imports {
			if !strings.HasPrefix(imported, "palimpsest/") || strings.HasPrefix(imported, l.path) && !strings.HasPrefix(path, "palimpsest/services/") {
				continue
			}
			if suite(imported) || !slices.ContainsFunc(l.may, func(p string) bool { return within(imported, p) }) {
				t.Errorf("%s may not import %s", path, imported)
			}
		}
	}
}

// within matches a path exactly, or everything below one that ends in "/".
func within(path, of string) bool {
	return path == of || strings.HasSuffix(of, "/") && strings.HasPrefix(path, of)
}

func layerOf(path string) (layer, bool) {
	best := layer{}
	for _, l := range layers {
		if (path == strings.TrimSuffix(l.path, "/") || strings.HasPrefix(path, strings.TrimSuffix(l.path, "/")+"/")) && len(l.path) > len(best.path) {
			best = l
		}
	}
	return best, best.path != ""
}

// TestDriversStayInTheirLayers checks that only the backend of an engine imports its
// driver, and bench/bare, which measures the engine itself.
func TestDriversStayInTheirLayers(t *testing.T) {
	t.Parallel()
	owners := map[string][]string{
		"modernc.org/sqlite":             {"palimpsest/internal/store/sqlite", "palimpsest/internal/sqlitefile", "palimpsest/internal/bench/bare"},
		"github.com/ClickHouse":          {"palimpsest/internal/audit/clickhouse"},
		"github.com/openai/openai-go":    {"palimpsest/internal/llm/openai", "palimpsest/internal/embed/openai"},
		"github.com/anthropics":          {"palimpsest/internal/llm/anthropic"},
		"github.com/ebitengine/purego":   {}, // tests alone
		"github.com/redis/go-redis":      {"palimpsest/internal/store/redis"},
		"github.com/alicebob/miniredis":  {}, // tests alone
		"github.com/nats-io/nats-server": {"palimpsest/internal/broker", "palimpsest/internal/topology", "palimpsest/internal/bench/bare"},
		"github.com/nats-io/nats.go":     {"palimpsest/internal/audit/journal", "palimpsest/internal/auth/bucket", "palimpsest/internal/erasure/streams", "palimpsest/internal/tail", "palimpsest/internal/engine", "palimpsest/internal/transfer", "palimpsest/internal/doctor", "palimpsest/internal/broker", "palimpsest/internal/topology", "palimpsest/internal/pipeline", "palimpsest/internal/app", "palimpsest/internal/cli", "palimpsest/internal/bench", "palimpsest/internal/bench/bare", "palimpsest/internal/chaos", "palimpsest/examples/consumer", "palimpsest/examples/chatbot"},
	}
	for path, imports := range importGraph(t) {
		if suite(path) {
			continue
		}
		for _, imported := range imports {
			for driver, may := range owners {
				if strings.HasPrefix(imported, driver) && !slices.Contains(may, path) {
					t.Errorf("%s imports the driver %s", path, imported)
				}
			}
		}
	}
}

// importGraph lists the packages of the module with their imports, without those
// of tests.
func importGraph(t *testing.T) map[string][]string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, "palimpsest/...").Output()
	if err != nil {
		t.Fatalf("list packages: %v", err)
	}
	graph := map[string][]string{}
	for line := range strings.SplitSeq(strings.TrimSpace(string(out)), "\n") {
		fields := strings.Fields(line)
		graph[fields[0]] = fields[1:]
	}
	if len(graph) < 20 {
		t.Fatalf("only %d packages listed", len(graph))
	}
	return graph
}
