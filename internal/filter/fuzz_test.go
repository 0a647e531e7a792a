package filter_test

import (
	"testing"

	"palimpsest/internal/filter"
)

// sound holds what any filter that was read promises: it can be evaluated, and
// written and read again.
func sound(t *testing.T, e filter.Expr, s filter.Schema) {
	t.Helper()
	matches := filter.Match(e, row)
	again, err := filter.ParseJSON(filter.JSON(e), s)
	if err != nil {
		t.Fatalf("written as %s: %v", filter.JSON(e), err)
	}
	if filter.Match(again, row) != matches {
		t.Fatalf("%s differs from what it was read from", filter.JSON(e))
	}
}

func FuzzJSON(f *testing.F) {
	for _, text := range []string{
		`{"AND":[{"field":"category","operator":"eq","value":"work"},{"OR":[]},{"NOT":{"field":"metadata.a.b","operator":"in","value":[1,"x",true]}}]}`,
		`{"field":"created_at","operator":"gte","value":"2026-01-01"}`, `{"field":"text","operator":"icontains","value":"é"}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, s := range []filter.Schema{filter.Memory, filter.Audit} {
			if e, err := filter.ParseJSON(text, s); err == nil {
				sound(t, e, s)
			}
		}
	})
}

func FuzzMem0(f *testing.F) {
	for _, text := range []string{
		`{"user_id":"*","NOT":[{"tag":"x"}],"n":{"gt":1,"lte":4},"metadata":{"a":["b"]}}`, `{"app_id":"*"}`, `{"AND":[{"categories":{"contains":"x"}}]}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if e, err := filter.ParseMem0(text); err == nil {
			filter.Match(e, row)
			filter.JSON(e)
		}
	})
}

func FuzzWhere(f *testing.F) {
	for _, text := range []string{
		`role = 'user' AND metadata.channel IN ('mail') OR NOT (confidence BETWEEN 0.1 AND 1e1)`,
		`text ILIKE '%it''s%' AND metadata."a.b" IS NOT NULL`, `a <> 'x' -- y`, `((((`,
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		e, err := filter.ParseWhere(text, filter.Memory)
		if err == nil {
			sound(t, e, filter.Memory)
		}
	})
}
