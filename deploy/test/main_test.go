// Package deploy_test checks the files of deploy/ and tilt/ against the types, schemas
// and grammars of their readers. It is a module of its own, because its dependencies
// (Kubernetes, kustomize, Compose, Prometheus) exceed those of the product. It imports
// no package of the product. internal/cli checks that the product has each flag, key and
// variable.
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
