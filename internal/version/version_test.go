package version

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestReleaseIsInTheChangelog: the newest release there is that of the source.
func TestReleaseIsInTheChangelog(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "CHANGELOG.md"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if name, ok := strings.CutPrefix(line, "## ["); ok && !strings.HasPrefix(name, "Unreleased") {
			if !strings.HasPrefix(name, release+"]") {
				t.Errorf("the changelog has %q, the source %s", strings.TrimSpace(line), release)
			}
			return
		}
	}
	t.Error("the changelog names no release")
}
