package topology

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go/jetstream"
)

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
