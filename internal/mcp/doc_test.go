package mcp

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"palimpsest/pkg/api"
)

// TestThePageHasTheTools: docs/mcp.md names each tool with its arguments.
func TestThePageHasTheTools(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/mcp.md")
	if err != nil {
		t.Fatal(err)
	}
	list, err := connect(t, &fakeMemory{}, api.Scope{}).ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range list.Tools {
		var args []string
		for name := range tool.InputSchema.(object)["properties"].(object) {
			if !slices.Contains([]string{"user", "agent", "session"}, name) {
				args = append(args, "`"+name+"`")
			}
		}
		_, row, found := strings.Cut(string(page), fmt.Sprintf("\n| `%s` |", tool.Name))
		row, _, _ = strings.Cut(row, "|")
		told := strings.Fields(strings.ReplaceAll(row, ",", ""))
		slices.Sort(args)
		slices.Sort(told)
		if !found || !slices.Equal(args, told) {
			t.Errorf("%s takes %v, the page says %v", tool.Name, args, told)
		}
	}
}
