package e2e

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"palimpsest/pkg/client"
	"palimpsest/pkg/scope"
)

// imports imports exports of other programs; a repetition changes nothing.
func imports(t *testing.T, i *instance) {
	i = i.in(t)
	exports := func(name string) string { return filepath.Join(root, "internal", "transcript", "testdata", name) }
	bring := func(args ...string) (out struct{ Messages, Memories int }) {
		t.Helper()
		stdout, stderr, code := run(t, nil, i.remote(append([]string{"import", "--json", "--user", "nora"}, args...)...)...)
		if code != 0 {
			t.Fatalf("import %q: %d %s", args, code, stderr)
		}
		if err := json.Unmarshal([]byte(stdout), &out); err != nil {
			t.Fatal(err)
		}
		return out
	}
	all := []string{exports("chatgpt.json"), exports("claude.json"), exports("mem0.json"), exports("training.jsonl")}
	first := bring(all...)
	if first.Messages != 11 || first.Memories != 2 {
		t.Errorf("%+v", first)
	}
	sel := of(scope.Scope{Project: i.whole().Project, User: "nora"})
	remembered := func() []string {
		i.settled(i.whole(), 13)
		return texts(i.facts(sel))
	}
	before := remembered()
	for _, want := range []string{"Oslo", "Fenwick Labs", "hydrologist", "Likes jazz"} {
		if !strings.Contains(strings.Join(before, "\n"), want) {
			t.Errorf("nothing about %s: %q", want, before)
		}
	}
	if again := bring(all...); again != first {
		t.Errorf("again: %+v", again)
	}
	if after := remembered(); len(after) != len(before) {
		t.Errorf("%q, and after a repetition %q", before, after)
	}
	page, err := i.api.Recent(t.Context(), sel, client.ListEpisodes{Limit: 100})
	if err != nil || len(page.Episodes) != 13 {
		t.Errorf("%d episodes, %v", len(page.Episodes), err)
	}
}

// TestImportNamesTheValue: a file that is no export is refused with the place.
func TestImportNamesTheValue(t *testing.T) {
	t.Parallel()
	_, stderr, code := run(t, strings.NewReader(`{"content":"x"}{"nothing":1}`), "--server", "http://127.0.0.1:1", "import", "--user", "nora", "-")
	if code != 1 || !strings.Contains(stderr, "value 2: the form of the value is unknown") {
		t.Errorf("%d %s", code, stderr)
	}
}
