package e2e

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestTheTableOfFaultsIsHonest: each test that docs/faults.md names exists, and
// each test of a fault is named there.
func TestTheTableOfFaultsIsHonest(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..")
	table, err := os.ReadFile(filepath.Join(root, "docs", "faults.md"))
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]bool{}
	for _, m := range regexp.MustCompile("`(Test\\w+)`").FindAllStringSubmatch(string(table), -1) {
		named[m[1]] = true
	}
	if len(named) < 20 {
		t.Fatalf("the table names %d tests", len(named))
	}
	declared := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, m := range declared.FindAllStringSubmatch(string(text), -1) {
			if fault := regexp.MustCompile(`^Test(P\d+)?Fault[A-Z]`).MatchString(m[1]); fault && !named[m[1]] {
				t.Errorf("%s is not in the table", m[1])
			}
			delete(named, m[1])
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name := range named {
		t.Errorf("%s is in the table and nowhere else", name)
	}
}
