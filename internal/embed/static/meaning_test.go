package static_test

import (
	"cmp"
	"encoding/json"
	"os"
	"slices"
	"testing"
)

// TestModelAgrees compares similarities of 24 pairs of sentences with those of
// the model that the table is distilled from: the rank correlation (Spearman).
func TestModelAgrees(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/pairs.json")
	if err != nil {
		t.Fatal(err)
	}
	var pairs []struct {
		A, B   string
		Cosine float64
	}
	if err := json.Unmarshal(data, &pairs); err != nil {
		t.Fatal(err)
	}
	if len(pairs) < 20 {
		t.Fatalf("only %d pairs", len(pairs))
	}
	var want, got []float64
	for _, p := range pairs {
		want, got = append(want, p.Cosine), append(got, similarity(t, p.A, p.B))
		t.Logf("%6.3f, model %6.3f: %s | %s", got[len(got)-1], p.Cosine, p.A, p.B)
	}
	const least = 0.7
	rho := spearman(want, got)
	t.Logf("rank correlation %.3f", rho)
	if rho < least {
		t.Errorf("rank correlation with the model %.3f, want %.2f", rho, least)
	}
}

// TestMeaningIsNear: a word is nearer to one of its meaning than to a stranger.
func TestMeaningIsNear(t *testing.T) {
	t.Parallel()
	for _, words := range [][3]string{
		{"job", "employer", "garden"},
		{"car", "drive", "soup"},
		{"mail", "email", "mountain"},
		{"dog", "pets", "contract"},
		{"doctor", "hospital", "violin"},
		{"my father", "her parents", "the database"},
	} {
		near, far := similarity(t, words[0], words[1]), similarity(t, words[0], words[2])
		if near < far+0.1 {
			t.Errorf("%s is %.3f from %s and %.3f from %s", words[0], near, words[1], far, words[2])
		}
	}
}

// spearman is the correlation of ranks of values without ties.
func spearman(a, b []float64) float64 {
	x, y := ranks(a), ranks(b)
	n, sum := float64(len(a)), 0.0
	for i := range x {
		sum += (x[i] - y[i]) * (x[i] - y[i])
	}
	return 1 - 6*sum/(n*(n*n-1))
}

func ranks(values []float64) []float64 {
	order := make([]int, len(values))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int { return cmp.Compare(values[i], values[j]) })
	out := make([]float64, len(values))
	for rank, i := range order {
		out[i] = float64(rank)
	}
	return out
}
