package eval

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"palimpsest/internal/retrieval"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestLoad(t *testing.T) {
	t.Parallel()
	set, err := Load("testdata/garden")
	if err != nil {
		t.Fatal(err)
	}
	if set.Name != "garden" || len(set.Turns) != 16 || len(set.Questions) != 5 {
		t.Errorf("%s: %d turns, %d questions", set.Name, len(set.Turns), len(set.Questions))
	}
	q := set.Questions[3]
	if q.Category != "context" || q.Now == nil || !cmp.Equal(q.Evidence, []string{"D2:4", "D2:6"}) {
		t.Errorf("question %+v", q)
	}
	m := set.Turns[9].message()
	if !strings.HasSuffix(m.Content, "\na wooden beehive with a green roof") || m.Metadata["speaker"] != "Ines" || m.Role != "user" {
		t.Errorf("message %+v", m)
	}
	if m := set.Turns[13].message(); m.Role != "assistant" {
		t.Errorf("the assistant speaks as %s", m.Role)
	}
}

func TestLoadRefuses(t *testing.T) {
	t.Parallel()
	for name, files := range map[string]map[string]string{
		"no questions": {"turns.jsonl": `{"dia_id":"a"}`},
		"no evidence":  {"turns.jsonl": `{"dia_id":"a"}`, "questions.jsonl": `{"qid":"q"}`, "gold.jsonl": `{"qid":"q"}`},
		"no JSON":      {"turns.jsonl": `{`, "questions.jsonl": ``, "gold.jsonl": ``},
	} {
		dir := t.TempDir()
		for file, text := range files {
			if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := Load(dir); err == nil {
			t.Errorf("%s: loaded", name)
		}
	}
}

func TestMeasure(t *testing.T) {
	t.Parallel()
	long := strings.Split(strings.Repeat("x ", 30), " ")
	for i := range long {
		long[i] += string(rune('0' + i))
	}
	for name, tc := range map[string]struct {
		evidence, ranked []string
		want             Figures
	}{
		"first":      {[]string{"a"}, []string{"a", "b"}, Figures{Questions: 1, First: 1, Three: 1, Recall5: 1, Recall10: 1, Recall25: 1, MRR: 1, RecallGold: 1}},
		"nothing":    {[]string{"a"}, nil, Figures{Questions: 1}},
		"half":       {[]string{"a", "c"}, []string{"b", "a"}, Figures{Questions: 1, Three: 1, Recall5: 0.5, Recall10: 0.5, Recall25: 0.5, MRR: 0.5, RecallGold: 0.5}},
		"repeated":   {[]string{"a"}, []string{"b", "b", "a"}, Figures{Questions: 1, Three: 1, Recall5: 1, Recall10: 1, Recall25: 1, MRR: 0.5}},
		"far behind": {[]string{"a"}, append(long[:25:25], "a"), Figures{Questions: 1, MRR: 1.0 / 26}},
	} {
		if diff := cmp.Diff(tc.want, measure(tc.evidence, tc.ranked)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestFit: the feature by which evidence differs gets the largest weight, in
// conversations that the weights were not fitted to as well.
func TestFit(t *testing.T) {
	t.Parallel()
	n := len(retrieval.FeatureNames())
	of := func(id string, values ...float64) retrieval.Candidate {
		return retrieval.Candidate{Episodes: []string{id}, Values: append(values, make([]float64, n-len(values))...)}
	}
	var examples []Example
	for _, conversation := range []string{"a", "b", "c"} {
		for i := range 4 {
			noise := float64(i%2) / 2
			examples = append(examples, Example{"garden", conversation, []string{"right"}, []retrieval.Candidate{
				of("wrong", 1-noise, 0.2), of("right", noise, 0.6), of("also wrong", 0.5, 0.1),
			}})
		}
	}
	f := Fit(examples)
	if best := slices.Index(f.Weights, slices.Max(f.Weights)); best != 1 {
		t.Errorf("weights %v", f.Weights)
	}
	if got := f.HeldOut["garden"]; got.Questions != 12 || got.MRR != 1 {
		t.Errorf("held out %+v", got)
	}
	var out strings.Builder
	if err := f.Write(&out); err != nil || !strings.Contains(out.String(), "held out") {
		t.Errorf("%v\n%s", err, out.String())
	}
}

func TestWrite(t *testing.T) {
	t.Parallel()
	r := Report{Set: "garden", Turns: 3, Runs: []Run{{Name: "text", All: Figures{Questions: 2, Recall10: 0.75}, Categories: map[string]Figures{"single": {Questions: 1, Recall10: 1}}}}}
	before := Report{Runs: []Run{{Name: "text", All: Figures{Recall10: 0.5}}}}
	var alone, compared strings.Builder
	if err := r.Write(&alone, nil); err != nil {
		t.Fatal(err)
	}
	if err := r.Write(&compared, &before); err != nil {
		t.Fatal(err)
	}
	several := Report{Runs: []Run{{Name: "text", All: Figures{Recall10: 0.25}}, {Name: "text", Embedder: "hashed", All: Figures{Recall10: 0.5}}}}
	for embedder, want := range map[string]float64{"hashed": 0.5, "static": 0.25} {
		if f, ok := several.figures(Run{Name: "text", Embedder: embedder}, everything); !ok || f.Recall10 != want {
			t.Errorf("the baseline of %s is %+v", embedder, f)
		}
	}
	if strings.Contains(alone.String(), "before") || !strings.Contains(alone.String(), "75.0") {
		t.Errorf("without a baseline:\n%s", alone.String())
	}
	if !strings.Contains(compared.String(), "+25.0") {
		t.Errorf("with a baseline:\n%s", compared.String())
	}
}
