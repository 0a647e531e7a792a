// Package deploy_test holds what is in deploy/ and tilt/ to the types, schemas and
// grammars of those who read it. It is a module of its own: what it needs for that
// (Kubernetes, kustomize, Compose, Prometheus) is more than the product's own
// modules, and none of it may end up there. It imports nothing of the product;
// that the product knows each flag, key and variable is held in internal/cli.
package deploy_test

import (
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// root is the repository's.
var root = filepath.Join("..", "..")

func read(t *testing.T, path ...string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(append([]string{root}, path...)...))
	if err != nil {
		t.Fatal(err)
	}
	return text
}
