package rulepack

import (
	"testing"

	"palimpsest/internal/extract"
	"palimpsest/internal/extract/extracttest"
)

func TestSuite(t *testing.T) {
	t.Parallel()
	extracttest.RunAll(t, func() extract.Extractor { return shippedExtractor(t) }, extracttest.Options{})
}
