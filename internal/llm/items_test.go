package llm_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"palimpsest/internal/llm"
)

func TestItems(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text    string
		want    []string // nil: not readable
		partial bool
	}{
		"object":           {`{"facts":[{"a":1},{"a":2}]}`, []string{`{"a":1}`, `{"a":2}`}, false},
		"other members":    {`{"note":{"facts":[]},"facts":[{"a":1}],"more":1}`, []string{`{"a":1}`}, false},
		"none":             {`{"facts":[]}`, []string{}, false},
		"bare":             {`[{"a":1}]`, []string{`{"a":1}`}, false},
		"bare, none":       {"```\n[]\n```", []string{}, false},
		"fence":            {"```json\n{\"facts\":[{\"a\":1}]}\n```", []string{`{"a":1}`}, false},
		"prose":            {`I found [1] {of two}: {"facts":[{"a":1}]} Done.`, []string{`{"a":1}`}, false},
		"text among":       {`{"facts":["x",{"a":1},null,3]}`, []string{`{"a":1}`}, false},
		"within an item":   {`{"facts":[{"a":1},{"a":"2`, []string{`{"a":1}`}, true},
		"behind an item":   {`{"facts":[{"a":1},`, []string{`{"a":1}`}, true},
		"before the end":   {`{"facts":[{"a":1}`, []string{`{"a":1}`}, true},
		"broken after one": {`{"facts":[{"a":1},{a:2}]}`, []string{`{"a":1}`}, true},
		"before the first": {`{"facts":[`, []string{}, true},
		"empty":            {" ", nil, false},
		"no list":          {`{"fact":[{"a":1}]}`, []string{`{"a":1}`}, false}, // a bare list within
		"prose alone":      {"There is nothing to remember [see above].", nil, false},
		"not a list":       {`{"facts":"none"}`, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, err := llm.Items(c.text, "facts")
			if c.want == nil {
				if !errors.Is(err, llm.ErrMalformed) {
					t.Fatalf("read %s, error %v", r.Items, err)
				}
				return
			}
			got := []string{}
			for _, item := range r.Items {
				got = append(got, string(item))
			}
			if diff := cmp.Diff(c.want, got); diff != "" || err != nil || r.Partial != c.partial {
				t.Errorf("partial %v, error %v (-want +got):\n%s", r.Partial, err, diff)
			}
		})
	}
}

func FuzzItems(f *testing.F) {
	f.Add("```json\n{\"facts\":[{\"a\":1}]}\n```")
	f.Add(`[1] {"facts":[{"a":[{"b":"]}`)
	f.Add(strings.Repeat("[{", 100))
	f.Fuzz(func(t *testing.T, text string) {
		r, err := llm.Items(text, "facts")
		if err != nil && !errors.Is(err, llm.ErrMalformed) {
			t.Fatal(err)
		}
		for _, item := range r.Items {
			if !json.Valid(item) || item[0] != '{' {
				t.Fatalf("%q is no object", item)
			}
		}
	})
}
