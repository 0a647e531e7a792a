package rules

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml/parser"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.uber.org/goleak"

	"palimpsest/internal/filter"
	"palimpsest/internal/memory"
	"palimpsest/pkg/events"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// parse reads a list of rules as the value of a key in a file.
func parse(t testing.TB, text string) (Config, error) {
	t.Helper()
	file, err := parser.ParseBytes([]byte(text), 0)
	if err != nil {
		t.Fatal(err)
	}
	var c Config
	return c, c.ReadYAML("my.yaml", file.Docs[0].Body)
}

func rulesOf(t *testing.T, text, model string) map[string]memory.Rule {
	t.Helper()
	c, err := parse(t, text)
	if err != nil {
		t.Fatal(err)
	}
	list, err := c.Rules(model)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]memory.Rule{}
	for _, r := range list {
		out[r.ID] = r
	}
	return out
}

func TestShippedRules(t *testing.T) {
	t.Parallel()
	want := []memory.Rule{
		{ID: memory.RuleTurn, Cadence: memory.Cadence{Every: 1}, Extractor: RulePack, Decider: Steps, CommitOnly: true, Enabled: true},
		{ID: memory.RuleSleep, Cadence: memory.Cadence{Every: 100, Cron: "0 3 * * *", SessionEnd: true}, Enabled: true},
		{ID: memory.RuleAdd, Cadence: memory.Cadence{Request: true}, Enabled: true},
		{ID: memory.RuleMaintenance, Cadence: memory.Cadence{Cron: "0 3 * * *"}, Steps: []string{events.StepPrune, events.StepEnrich}, Enabled: true},
	}
	if diff := cmp.Diff(want, Shipped()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestRulesAreLaidOverTheShippedOnes(t *testing.T) {
	t.Parallel()
	got := rulesOf(t, `
- id: sleep
  every: 50
  tz: Europe/Berlin
- id: turn
  enabled: false
- id: mail
  every: 10
  when: role = 'user' AND metadata.channel IN ('mail')
  then: [semantic, opinion]
  prompt: |
    Read mails.
`, "")
	sleep := got["sleep"]
	if sleep.Cadence.Every != 50 || sleep.Cadence.Cron != "0 3 * * *" || !sleep.Cadence.SessionEnd || sleep.Cadence.Location.String() != "Europe/Berlin" {
		t.Errorf("sleep %+v", sleep)
	}
	if turn := got["turn"]; turn.Enabled || turn.Cadence.Every != 1 {
		t.Errorf("turn %+v", turn)
	}
	mail := got["mail"]
	want := memory.Rule{
		ID: "mail", Cadence: memory.Cadence{Every: 10}, Enabled: true, Prompt: "Read mails.\n",
		Then: []events.FactKind{events.FactSemantic, events.FactOpinion}, Where: "role = 'user' AND metadata.channel IN ('mail')",
	}
	if diff := cmp.Diff(want, mail, cmpopts.IgnoreFields(memory.Rule{}, "When")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	row := func(channel string) filter.Row {
		return func(field string) any {
			return map[string]any{"role": "user", "metadata": map[string]any{"channel": channel}}[field]
		}
	}
	if !filter.Match(mail.When, row("mail")) || filter.Match(mail.When, row("chat")) {
		t.Error("the condition of rule mail does not keep what it names")
	}
}

func TestAModelIsTheFullExtractor(t *testing.T) {
	t.Parallel()
	got := rulesOf(t, "- {id: mine, every: 7}", Model)
	for _, id := range []string{"sleep", "mine"} {
		if r := got[id]; r.Extractor != Model || r.Decider != Model || r.Class != events.ClassModel {
			t.Errorf("%s: %+v", id, r)
		}
	}
	if r := got["turn"]; r.Extractor != RulePack || r.Decider != Steps || r.Class != "" {
		t.Errorf("turn: %+v", r)
	}
	if r := rulesOf(t, "- {id: talk, every: 1, streaming: true}", Model)["talk"]; r.Extractor != Model {
		t.Errorf("talk: %+v", r)
	}
}

func TestWrongRulesAreNamedWithTheirLine(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ text, model, want string }{
		"unknown key":     {"- id: a\n  evry: 2\n", "", `my.yaml:2: rule a: evry: unknown key; the nearest known one is "every"`},
		"no id":           {"- every: 2\n", "", "my.yaml:1: rules: id: is required"},
		"id with a space": {"- id: a b\n", "", `my.yaml:1: rules: id: "a b"`},
		"reserved":        {"- id: command\n", "", "my.yaml:1: rule command: id"},
		"type":            {"- id: a\n  every: often\n", "", "my.yaml:2: rule a: every: "},
		"negative":        {"- id: a\n  every: -1\n", "", "my.yaml:2: rule a: every: "},
		"fraction":        {"- id: a\n  every: 1.5\n", "", "my.yaml:2: rule a: every: needs a whole number"},
		"cron":            {"- id: a\n\n  cron: 0 3 * *\n", "", "my.yaml:3: rule a: cron: "},
		"never fires":     {"- id: a\n  cron: 0 0 30 2 *\n", "", "my.yaml:2: rule a: cron: "},
		"zone":            {"- id: a\n  tz: Mars\n", "", "my.yaml:2: rule a: tz: "},
		"unknown column":  {"- id: a\n  every: 2\n  when: rol = 'user'\n", "", `my.yaml:3: rule a: when: filter: at character 1: unknown field "rol"; the nearest known one is "role"`},
		"fact column":     {"- id: a\n  when: subject = 'x'\n", "", "my.yaml:2: rule a: when: "},
		"subquery":        {"- id: a\n  when: id IN (SELECT id FROM t)\n", "", "my.yaml:2: rule a: when: "},
		"kind":            {"- id: a\n  then: [semantic, dream]\n", "", `my.yaml:2: rule a: then: "dream" is none of`},
		"extractor":       {"- id: a\n  extractor: magic\n", "", "my.yaml:2: rule a: extractor: "},
		"no model":        {"- id: a\n  every: 2\n  extractor: model\n", "", "my.yaml:3: rule a: extractor: no language model is configured"},
		"never due":       {"- id: a\n  when: role = 'user'\n", "", "my.yaml:1: rule a: is never due"},
		"streaming":       {"- id: a\n  every: 1\n", Model, "my.yaml:2: rule a: every: 1 with a language model reads message by message"},
		"twice":           {"- {id: a, every: 2}\n- {id: a, every: 3}\n", "", "my.yaml:2: rule a: id: is that of an earlier rule"},
		"two of requests": {"- id: a\n  request: true\n", "", "my.yaml:2: rule a: request: is that of another rule"},
		"request, due":    {"- id: add\n  every: 5\n", "", "rule add: request: has a cadence of its own"},
		"step":            {"- id: a\n  steps: [dream]\n", "", "my.yaml:2: rule a: steps: "},
		"empty step":      {"- id: a\n  steps: ['']\n", "", "my.yaml:2: rule a: steps: "},
		"step that reads": {"- id: maintenance\n  every: 5\n", "", "my.yaml:2: rule maintenance: every: has no meaning beside steps"},
		"step at no time": {"- id: a\n  steps: [prune]\n", "", "my.yaml:2: rule a: steps: needs cron"},
		"scalar":          {"5\n", "", "my.yaml:1: rules: needs rules"},
		"missing file":    {"- none.yaml\n", "", "none.yaml"},
		"shipped":         {"- id: sleep\n  every: 1\n", Model, "my.yaml:2: rule sleep: every: 1 with a language model"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, err := parse(t, tt.text)
			if err == nil {
				_, err = c.Rules(tt.model)
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("error %v, want %s", err, tt.want)
			}
			if name != "missing file" && !errors.As(err, new(*ConsolidationRuleError)) {
				t.Errorf("%T is no ConsolidationRuleError", err)
			}
		})
	}
}

func TestEveryWrongKeyIsNamedAtOnce(t *testing.T) {
	t.Parallel()
	_, err := parse(t, "- id: a\n  every: x\n  cron: y\n- id: b\n  then: [z]\n")
	for _, want := range []string{"my.yaml:2:", "my.yaml:3:", "my.yaml:5:"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v lacks %s", err, want)
		}
	}
}

func TestRulesComeFromFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write("b.yaml", "- id: b\n  every: 3\n")
	path := write("a.yaml", "- b.yaml\n- id: a\n  every: 2\n")
	var c Config
	if err := c.ReadText(path); err != nil {
		t.Fatal(err)
	}
	if got, want := c.String(), "turn, sleep, add, maintenance, b, a"; got != want {
		t.Errorf("rules %s, want %s", got, want)
	}
	write("b.yaml", "- a.yaml\n")
	if err := c.ReadText(path); err == nil || !strings.Contains(err.Error(), "deep") {
		t.Errorf("files that name each other: %v", err)
	}
	write("b.yaml", "- id: b\n  evry: 3\n")
	if err := c.ReadText(path); err == nil || !strings.Contains(err.Error(), "b.yaml:2: rule b") {
		t.Errorf("an error in the second file: %v", err)
	}
}

// FuzzRules: no text panics, and a written rule is read the same again.
func FuzzRules(f *testing.F) {
	f.Add("- id: a\n  every: 2\n  when: role = 'user'\n")
	f.Add("- {id: turn, enabled: false}")
	f.Add("- id: a\n  then: [semantic]\n  cron: '* * * * *'\n  tz: UTC\n")
	f.Add("x: [")
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(text, "/") {
			t.Skip("may name files")
		}
		file, err := parser.ParseBytes([]byte(text), 0)
		if err != nil || len(file.Docs) == 0 || file.Docs[0].Body == nil {
			return
		}
		var c Config
		if c.ReadYAML("fuzz", file.Docs[0].Body) != nil {
			return
		}
		one, err := c.Rules("")
		two, again := c.Rules("")
		if (err == nil) != (again == nil) || len(one) != len(two) {
			t.Errorf("read twice: %v, %v", err, again)
		}
	})
}
