package memory

import (
	"strings"
	"testing"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
	"pgregory.net/rapid"
)

// TestNormalizeFoldsASCIIAsAnyText: the short way gives what the long one does.
func TestNormalizeFoldsASCIIAsAnyText(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := string(rapid.SliceOf(rapid.ByteMax(0x7f)).Draw(t, "text"))
		want := strings.Join(strings.Fields(cases.Fold().String(norm.NFKC.String(text))), " ")
		if got := Normalize(text); got != want {
			t.Fatalf("Normalize(%q) = %q, want %q", text, got, want)
		}
	})
}
