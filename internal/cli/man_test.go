package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestManualHasEveryCommand: each command that help lists has a page, and the page has
// each flag of the command. Where groff is installed, it finds no fault.
func TestManualHasEveryCommand(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "man1")
	if code, _, complaint := call(t, "man", dir); code != exitOK {
		t.Fatal(complaint)
	}
	read := func(name string) string {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	program, pages := read("palimpsest.1"), 1
	for _, c := range commands() {
		if c.hidden {
			if strings.Contains(program, `palimpsest\-`+strings.ReplaceAll(c.Name, "-", `\-`)+"(1)") {
				t.Errorf("the hidden %s has a page", c.Name)
			}
			continue
		}
		pages++
		if !strings.Contains(program, `palimpsest\-`+strings.ReplaceAll(c.Name, "-", `\-`)+"(1)") {
			t.Errorf("palimpsest.1 does not name %s", c.Name)
		}
		read("palimpsest-" + c.Name + ".1")
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) != pages {
		t.Errorf("%d pages, want %d (%v)", len(files), pages, err)
	}
	for name, want := range map[string][]string{
		"palimpsest-search.1":   {`\-\-user=`, `\-\-limit=`, "palimpsest search"},
		"palimpsest-topology.1": {`.SH "TOPOLOGY ACCOUNTS"`, `\-\-publisher=PROJECT`},
		"palimpsest.1":          {`\-\-api\-key\-file=FILE`, ".SH \"EXIT STATUS\""},
	} {
		for _, text := range want {
			if !strings.Contains(read(name), text) {
				t.Errorf("%s has no %s", name, text)
			}
		}
	}
	formatted(t, files)
}

func formatted(t *testing.T, files []string) {
	t.Helper()
	groff, err := exec.LookPath("groff")
	if err != nil {
		t.Log("groff is not installed: the pages are not formatted")
		return
	}
	out, err := exec.CommandContext(t.Context(), groff, append([]string{"-man", "-Kutf8", "-Tutf8", "-ww", "-z"}, files...)...).CombinedOutput()
	if err != nil || len(out) > 0 {
		t.Errorf("groff: %v\n%s", err, out)
	}
}
