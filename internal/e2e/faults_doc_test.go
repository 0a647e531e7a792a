package e2e

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// root is the repository.
var root = filepath.Join("..", "..")

// TestTheTableOfFaultsIsHonest: each test that docs/faults.md names exists, and
// each test of a fault is named there.
func TestTheTableOfFaultsIsHonest(t *testing.T) {
	t.Parallel()
	named := namedTests(t, "docs/faults.md")
	for name := range declaredTests(t) {
		if fault := regexp.MustCompile(`^(Test|TestScenarios/)(P\d+)?Fault[A-Z]`).MatchString(name); fault && !named[name] {
			t.Errorf("%s is not in the table", name)
		}
	}
}

func TestTheTableOfThreatsIsHonest(t *testing.T) {
	t.Parallel()
	namedTests(t, "THREATS.md")
}

// namedTests are those that a document names; each of them must exist.
func namedTests(t *testing.T, document string) map[string]bool {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, document))
	if err != nil {
		t.Fatal(err)
	}
	declared, named := declaredTests(t), map[string]bool{}
	for _, m := range regexp.MustCompile("`((Test|Fuzz)[\\w/]+)`").FindAllStringSubmatch(string(text), -1) {
		if named[m[1]] = true; !declared[m[1]] {
			t.Errorf("%s names %s, which is nowhere", document, m[1])
		}
	}
	if len(named) < 20 {
		t.Fatalf("%s names %d tests", document, len(named))
	}
	return named
}

// declaredTests are all of this repository, and the scenarios.
func declaredTests(t *testing.T) map[string]bool {
	t.Helper()
	declaration, declared := regexp.MustCompile(`(?m)^func ((Test|Fuzz)\w+)\(`), map[string]bool{}
	for _, s := range scenarios {
		declared["TestScenarios/"+s.name] = true
	}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, m := range declaration.FindAllStringSubmatch(string(text), -1) {
			declared[m[1]] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return declared
}
