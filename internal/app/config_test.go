package app

import (
	"testing"

	"palimpsest/internal/terminal"
)

func TestIngestsLimitsAreQuerys(t *testing.T) {
	t.Parallel()
	inv := NewInvocation(t.Context(), terminal.Terminal{Environ: []string{"PALIMPSEST_INGEST_MAX_CONTENT=1000", "PALIMPSEST_INGEST_MAX_METADATA=200"}}, Flags{})
	c, _, err := inv.Configuration(map[string]string{"http.listen": "127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	if c.Query.MaxContent != 1000 || c.Query.MaxMetadata != 200 || c.HTTP.Listen != "127.0.0.1:1" {
		t.Errorf("query's limits are %d and %d, HTTP listens on %s", c.Query.MaxContent, c.Query.MaxMetadata, c.HTTP.Listen)
	}
}
