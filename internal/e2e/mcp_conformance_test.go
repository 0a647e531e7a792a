package e2e

import (
	"path/filepath"
	"testing"

	"palimpsest/internal/mcp/conformancetest"
)

// TestMCPConformance: the official suite fails where the checked-in list says so, and
// nowhere else.
func TestMCPConformance(t *testing.T) {
	t.Parallel()
	expected, err := filepath.Abs(filepath.Join("testdata", "mcp", "conformance.yml"))
	if err != nil {
		t.Fatal(err)
	}
	conformancetest.Run(t, root, start(t, t.TempDir()).HTTP+"/mcp?user=nora", expected)
}
