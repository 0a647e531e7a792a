package topology

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"
	"pgregory.net/rapid"
)

// patterns draws subjects from few tokens, so that they often meet.
func patterns(wild bool) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		choices := []string{"a", "b", "c"}
		if wild {
			choices = append(choices, "*", "*")
		}
		tokens := rapid.SliceOfN(rapid.SampledFrom(choices), 1, 4).Draw(t, "tokens")
		if wild && rapid.Bool().Draw(t, "open") {
			tokens = append(tokens, ">")
		}
		return strings.Join(tokens, ".")
	})
}

func TestPatternsAgreeWithTheServer(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, b, literal := patterns(true).Draw(t, "a"), patterns(true).Draw(t, "b"), patterns(false).Draw(t, "literal")
		if got, want := overlaps(a, b), server.SubjectsCollide(a, b); got != want {
			t.Fatalf("overlaps(%q, %q) = %t, the server says %t", a, b, got, want)
		}
		if overlaps(a, b) != overlaps(b, a) {
			t.Fatalf("overlaps(%q, %q) is not symmetric", a, b)
		}
		inA, inB := covers(a, literal), covers(b, literal)
		if inA && inB && !overlaps(a, b) {
			t.Fatalf("%q matches %q and %q, which do not overlap", literal, a, b)
		}
		if covers(a, b) && inB && !inA {
			t.Fatalf("%q covers %q, yet does not match %q", a, b, literal)
		}
		if !covers(a, a) || covers(a, b) && !overlaps(a, b) {
			t.Fatalf("covers(%q, %q) is no order", a, b)
		}
	})
}

func TestStoredSubjects(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, destination string
		want              []string
	}{
		{"none", "", []string{"in.*.*"}},
		{"wildcards", "out.{{wildcard(1)}}.{{ Wildcard(2) }}", []string{"out.*.*"}},
		{"old form", "out.$2.$1", []string{"out.*.*"}},
		{"partitions", "out.{{partition(3,1,2)}}.{{wildcard(1)}}", []string{"out.0.*", "out.1.*", "out.2.*"}},
		{"partition of all", "{{Partition(2)}}.x", []string{"0.x", "1.x"}},
		{"hostile count", "out.{{partition(999999999,1)}}", []string{"out.*"}},
		{"other function", "out.{{left(1,2)}}", []string{"out.*"}},
		{"fixed", "out", []string{"out"}},
	} {
		cfg := jetstream.StreamConfig{Subjects: []string{"in.*.*"}}
		if tc.destination != "" {
			cfg.SubjectTransform = &jetstream.SubjectTransformConfig{Source: "in.*.*", Destination: tc.destination}
		}
		if diff := cmp.Diff(tc.want, storedSubjects(cfg)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
	}
}

func FuzzStoredSubjects(f *testing.F) {
	for _, seed := range []string{"", "a.{{partition(16,1,2,3)}}.{{wildcard(1)}}", "{{partition(4096)}}.{{partition(4096)}}", "{{", "$1", "a..b"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, destination string) {
		stored := storedSubjects(jetstream.StreamConfig{
			Subjects:         []string{"in.*"},
			SubjectTransform: &jetstream.SubjectTransformConfig{Source: "in.*", Destination: destination},
		})
		if len(stored) == 0 || len(stored) > maxPartitions {
			t.Fatalf("%d subjects", len(stored))
		}
		if destination != "" && slices.ContainsFunc(stored, func(s string) bool {
			return strings.Count(s, ".") != strings.Count(destination, ".") && !strings.Contains(destination, "{{")
		}) {
			t.Fatalf("%q has another number of tokens than %q", stored, destination)
		}
	})
}
