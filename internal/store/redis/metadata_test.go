package redis

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"palimpsest/internal/filter"
	"palimpsest/internal/memory"
	"palimpsest/internal/store"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// TestMetadataIsFoundByItsTags: an equality of metadata reads the rows that match, those
// of very many values, and those that an earlier version wrote, and no others.
func TestMetadataIsFoundByItsTags(t *testing.T) {
	t.Parallel()
	s := openNew(t, testConfig(t))
	said := func(id string, metadata map[string]any) memory.Episode {
		return memory.Episode{
			ID: id, Scope: ana, Role: events.RoleUser, Content: "word", Mode: events.ModePersistent, Timestamp: said0, ArrivedAt: said0, Metadata: metadata,
		}
	}
	many := map[string]any{"topic": "tea"}
	for i := range 2 * maxLeaves {
		many[fmt.Sprint("key", i)] = i
	}
	episodes := []memory.Episode{
		said("tea", map[string]any{"topic": "tea", "n": 1.0}), said("list", map[string]any{"topic": []any{"milk", "tea"}}),
		said("below", map[string]any{"a": map[string]any{"topic": "tea"}}), said("many", many), said("old", map[string]any{"topic": "tea"}),
		said("older", map[string]any{"topic": "milk"}), said("none", nil),
	}
	for i := range 20 {
		episodes = append(episodes, said(fmt.Sprint("other", i), map[string]any{"topic": "milk", "n": float64(i + 2)}))
	}
	if _, err := s.PutEpisodes(t.Context(), episodes); err != nil {
		t.Fatal(err)
	}
	for _, e := range episodes {
		if e.ID == "old" || e.ID == "older" {
			if _, err := s.call(t.Context(), "HDEL", s.place(ana.Fact()).episode(ana.Session, e.Source, e.ID), metadataTags); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, tc := range []struct {
		path string
		want filter.Value
		ids  []string
		read uint64
	}{
		{"topic", filter.TextValue("tea"), []string{"list", "many", "old", "tea"}, 5},
		{"a.topic", filter.TextValue("tea"), []string{"below"}, 4},
		{"n", filter.NumberValue(1), []string{"tea"}, 4},
		{"key100", filter.NumberValue(100), []string{"many"}, 3},
		{"topic", filter.TextValue("coffee"), nil, 3},
	} {
		q := store.SearchQuery{Target: store.Episodes, Limit: 50, Filter: &store.Filter{
			Expr: filter.Cond{Field: filter.Field{Name: "metadata", Path: tc.path}, Op: filter.Eq, Values: []filter.Value{tc.want}},
		}}
		hits, err := s.SearchText(t.Context(), scope.Under(ana), "word", q)
		if err != nil {
			t.Fatal(err)
		}
		var ids []string
		for _, h := range hits {
			ids = append(ids, h.Episode.ID)
		}
		if slices.Sort(ids); !slices.Equal(ids, tc.ids) {
			t.Errorf("%s = %v finds %v, want %v", tc.path, tc.want.Key(), ids, tc.ids)
		}
		a, err := s.search(t.Context(), s.searchArgs(s.finder(scope.Under(ana), q).anyTerm([]string{"wword"}), 0, "VERBATIM"))
		if err != nil || a.total != tc.read {
			t.Errorf("%s = %v reads %d rows, want %d: %v", tc.path, tc.want.Key(), a.total, tc.read, err)
		}
	}
}

// TestRowsOfManyValuesHaveOneTag: up to maxLeaves values have a tag each.
func TestRowsOfManyValuesHaveOneTag(t *testing.T) {
	t.Parallel()
	metadata := map[string]any{}
	for i := range maxLeaves {
		metadata[fmt.Sprint("key", i)] = i
	}
	if n := len(strings.Split(tagsOf(metadata), ",")); n != 1+maxLeaves {
		t.Errorf("%d tags of %d values", n, maxLeaves)
	}
	metadata["one more"] = true
	if tags := tagsOf(metadata); tags != taggedTag+","+anyLeafTag {
		t.Errorf("the tags of one value more are %s", tags)
	}
}
