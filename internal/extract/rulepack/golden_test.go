package rulepack

import (
	"context"
	"flag"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"palimpsest/internal/extract"
	"palimpsest/internal/memory"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

var update = flag.Bool("update", false, "rewrite golden files")

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC) // a Friday

func shippedExtractor(t testing.TB) *Extractor {
	t.Helper()
	x, err := New()
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func userSays(id, content string) memory.Episode {
	return memory.Episode{
		ID: id, Scope: scope.Scope{Project: "p", User: "u", Session: "s"}, Role: events.RoleUser,
		Content: content, Timestamp: noon, Ordinal: 1,
	}
}

func extracted(t testing.TB, x *Extractor, e memory.Episode, before ...memory.Episode) []events.Candidate {
	t.Helper()
	out, err := x.Extract(context.Background(), []memory.Episode{e}, extract.Context{Scope: e.Scope.Fact(), Rule: "turn", Before: before})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// line renders a candidate for golden files.
func line(c events.Candidate) string {
	var b strings.Builder
	b.WriteString("  " + c.Text + " (" + c.Subject + ", " + c.Predicate + ", " + c.Object + ")")
	for _, f := range []struct {
		on   bool
		name string
	}{
		{c.Negated, "negated"}, {c.Hedged, "hedged"}, {c.Transient, "transient"}, {!c.Explicit, "implicit"},
		{c.Cardinality == events.One, "one"}, {c.Sensitivity != events.SensitivityNone, string(c.Sensitivity)},
		{c.Kind != events.FactSemantic, string(c.Kind)},
	} {
		if f.on {
			b.WriteString(" " + f.name)
		}
	}
	if c.ValidFrom != nil {
		b.WriteString(" from " + c.ValidFrom.Format(time.DateOnly))
	}
	if !c.EventTime.Equal(noon) {
		b.WriteString(" on " + c.EventTime.Format(time.DateOnly))
	}
	return b.String()
}

// TestPositive compares what each sentence of a golden file gives: sentences
// stand at the margin, candidates are indented below them.
func TestPositive(t *testing.T) {
	t.Parallel()
	x := shippedExtractor(t)
	for _, name := range []string{"testdata/positive_en.txt", "testdata/positive_ru.txt"} {
		want, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var got strings.Builder
		for sentence := range strings.Lines(string(want)) {
			if strings.HasPrefix(sentence, " ") {
				continue
			}
			sentence = strings.TrimSpace(sentence)
			got.WriteString(sentence + "\n")
			found := extracted(t, x, userSays("1", sentence))
			if len(found) == 0 {
				t.Errorf("%s: %q gives nothing", name, sentence)
			}
			for _, c := range found {
				got.WriteString(line(c) + "\n")
			}
		}
		if *update {
			if err := os.WriteFile(name, []byte(got.String()), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(string(want), got.String()); diff != "" && !*update {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestNegative holds that questions, hypotheses, quotations and what others say
// or are give nothing.
func TestNegative(t *testing.T) {
	t.Parallel()
	x := shippedExtractor(t)
	src, err := os.ReadFile("testdata/negative.txt")
	if err != nil {
		t.Fatal(err)
	}
	for sentence := range strings.Lines(string(src)) {
		for _, c := range extracted(t, x, userSays("1", strings.TrimSpace(sentence))) {
			t.Errorf("%q gives%s by %s", strings.TrimSpace(sentence), line(c), c.RuleID)
		}
	}
}
