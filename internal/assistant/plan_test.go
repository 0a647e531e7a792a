package assistant

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files anew")

var call = Call{Program: "/opt/my tools/palimpsest", Flags: []string{"--server", "http://127.0.0.1:9000"}, User: "nora o'neil"}

func noEnv(string) string { return "" }

// files are configurations as users have them.
var files = map[string]map[string]string{
	"empty": {},
	"used": {
		".claude.json":          "{\n  \"numStartups\": 7,\n  \"mcpServers\": {\n    \"github\": {\n      \"command\": \"gh\",\n      \"args\": []\n    }\n  },\n  \"z\": 1\n}",
		".claude/settings.json": "{\n\t\"model\": \"opus\",\n\t\"hooks\": {\n\t\t\"Stop\": [\n\t\t\t{\n\t\t\t\t\"matcher\": \"\",\n\t\t\t\t\"hooks\": [\n\t\t\t\t\t{\n\t\t\t\t\t\t\"type\": \"command\",\n\t\t\t\t\t\t\"command\": \"say done\"\n\t\t\t\t\t}\n\t\t\t\t]\n\t\t\t}\n\t\t]\n\t}\n}\n",
		".codex/config.toml":    "# mine\nmodel = \"o5\"\n\n[mcp_servers.github]\ncommand = \"gh\"\n",
		".cursor/hooks.json":    "{\n  \"version\": 1,\n  \"hooks\": {\n    \"stop\": [\n      {\n        \"command\": \"./mine.sh\"\n      }\n    ]\n  }\n}\n",
		".gemini/settings.json": "{\n  \"theme\": \"dark\"\n}\n",
	},
}

// home lays out files below a new directory.
func home(t *testing.T, texts map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range texts {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o640); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// found reads all files below a directory.
func found(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(file string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(file)
		name, _ := filepath.Rel(dir, file) // below dir by construction
		out[name] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestInstallAndUndo: the diff is the golden one, a second installation changes
// nothing, and the files are as before after the undo.
func TestInstallAndUndo(t *testing.T) {
	t.Parallel()
	for state, before := range files {
		for _, name := range Names() {
			t.Run(name+" "+state, func(t *testing.T) {
				t.Parallel()
				dir := home(t, before)
				plan := func(undo bool) Plan {
					t.Helper()
					p, err := New(name, call, undo, dir, noEnv)
					if err != nil {
						t.Fatal(err)
					}
					return p
				}
				install := plan(false)
				golden(t, name+"-"+state+".diff", strings.ReplaceAll(install.Diff(), dir, "~"))
				if err := install.Apply(); err != nil {
					t.Fatal(err)
				}
				if again := plan(false); len(again.Changes) > 0 {
					t.Errorf("a second installation changes:\n%s", again.Diff())
				}
				if err := plan(true).Apply(); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(before, found(t, dir)); diff != "" {
					t.Errorf("after the undo (-before +after):\n%s", diff)
				}
			})
		}
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

// TestRefusals: a file that cannot be edited stays as it is.
func TestRefusals(t *testing.T) {
	t.Parallel()
	for want, texts := range map[string]map[string]string{
		"comments are not supported": {".gemini/settings.json": "{\n  // mine\n}"},
		"no JSON object":             {".gemini/settings.json": "[]"},
	} {
		if _, err := New("gemini", call, false, home(t, texts), noEnv); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v", texts, err)
		}
	}
	taken := map[string]string{".codex/config.toml": "[mcp_servers.palimpsest]\ncommand = \"x\"\n"}
	if _, err := New("codex", call, false, home(t, taken), noEnv); err == nil || !strings.Contains(err.Error(), "did not add") {
		t.Errorf("codex: %v", err)
	}
	if _, err := New("emacs", call, false, t.TempDir(), noEnv); err == nil || !strings.Contains(err.Error(), "claude-code") {
		t.Errorf("emacs: %v", err)
	}
	dir := home(t, files["used"])
	plan, err := New("gemini", call, false, dir, noEnv)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, ".gemini/settings.json"), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := plan.Apply(); err == nil || !strings.Contains(err.Error(), "changed meanwhile") {
		t.Errorf("a file that has changed: %v", err)
	}
}

// TestDirectoryOfTheEnvironment: the variables of the assistants are honoured.
func TestDirectoryOfTheEnvironment(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	plan, err := New("claude-code", call, false, "/nowhere", func(string) string { return dir })
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range plan.Changes {
		got = append(got, c.File)
	}
	want := []string{filepath.Join(dir, ".claude.json"), filepath.Join(dir, "settings.json")}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
