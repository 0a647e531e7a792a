package transfer_test

import (
	"strings"
	"testing"

	"palimpsest/internal/transfer"
)

// TestImportRefusesPartsOfAnExport checks that an export without its end, or with
// other text, is an error that says where.
func TestImportRefusesPartsOfAnExport(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                           "the export is not whole",
		`{"end":{"episodes":1}}`:     "the export is not whole",
		`{"id":"f1"}`:                "line 1: is no part of an export",
		"{\"end\":{}}\n{\"end\":{}}": "line 2: follows the end",
		"{\"end\":{}}\nyes":          "line 2: ",
		`{"end":{"sum":"00"}}`:       "the export was changed",
	} {
		_, err := transfer.Import(t.Context(), nil, strings.NewReader(text), nil, func(int) {})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	out, err := transfer.Import(t.Context(), nil, strings.NewReader(`{"end":{"digest":"d","sum":"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"}}`), nil, func(int) {})
	if err != nil || out.Digest != "d" {
		t.Errorf("%+v, %v", out, err)
	}
}
