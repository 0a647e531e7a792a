package redis

import (
	"slices"
	"strings"

	"palimpsest/internal/filter"
	"palimpsest/internal/store"
	"palimpsest/pkg/scope"
)

// indexed are how the fields of one kind of row stand in the index. Metadata stands in
// the field of tags named metadataTags.
type indexed struct {
	constant func(filter.Cond) (match, ok bool)
	tags     map[string]tagField
	times    map[string]string
	numbers  map[string]string
}

// tagField is a tag and how it stands for a string.
type tagField struct {
	name  string
	value func(string) string
}

func hashed(text string) string { return token(text) }

var indexedFacts = indexed{
	constant: store.OfFact,
	tags: map[string]tagField{
		"id": {"id", hashed}, "hash": {"hash", hashed}, "session": {"ses", hashed}, "kind": {"kind", scope.Encode},
		"user": {"u", scope.Encode}, "agent": {"a", scope.Encode},
	},
	times:   map[string]string{"created_at": "ct", "event_time": "et", "valid_from": "vf", "valid_until": "vu"},
	numbers: map[string]string{"revision": "rev"},
}

var indexedEpisodes = indexed{
	constant: store.OfEpisode,
	tags: map[string]tagField{
		"id": {"id", hashed}, "session": {"x", scope.Encode}, "user": {"u", scope.Encode}, "agent": {"a", scope.Encode},
	},
	times:   map[string]string{"event_time": "ts"},
	numbers: map[string]string{"ordinal": "ord"},
}

func indexedOf(t store.Target) indexed {
	if t == store.Facts {
		return indexedFacts
	}
	return indexedEpisodes
}

// matching adds what the index can express of a filter, a conjunction of tags and
// ranges; the rows that it finds still have to be matched. It returns false where no
// row can match.
func (q *query) matching(i indexed, x *store.Filter) bool {
	if x == nil {
		return true
	}
	type clauses = []clause
	none := clauses{{}}
	weak, ok := filter.Weaken(x.Expr, filter.Backend[clauses]{
		Cond: func(c filter.Cond, negated bool) (clauses, bool) {
			if match, ok := i.constant(c); ok {
				return none, match == negated
			}
			clause := i.clause(c)
			return clauses{clause}, clause.add != nil && !negated
		},
		And:  func(list []clauses) clauses { return slices.Concat(list...) },
		None: none,
	})
	if !ok {
		return true
	}
	var ranges clauses
	for _, c := range weak {
		switch {
		case c.add == nil:
			return false
		case c.tag:
			c.add(q)
		default:
			ranges = append(ranges, c)
		}
	}
	for _, c := range ranges {
		c.add(q)
	}
	return true
}

// clause adds a condition to a query; tags come before ranges.
type clause struct {
	tag bool
	add func(*query)
}

// maxTags bounds the values of one tag in a query.
const maxTags = 512

// clause expresses a condition; add is nil where the index cannot.
func (i indexed) clause(c filter.Cond) clause {
	if c.Field.Name == "metadata" && (c.Op == filter.Eq || c.Op == filter.In) && len(c.Values) <= maxTags {
		return clause{true, func(q *query) { q.hasMetadata(c) }}
	}
	if t, ok := i.tags[c.Field.Name]; ok && (c.Op == filter.Eq || c.Op == filter.In) && len(c.Values) <= maxTags {
		names := []string{noTag} // a list of none matches none
		for _, v := range c.Values {
			if v.Text != "" {
				names = append(names, t.value(v.Text))
			}
		}
		return clause{true, func(q *query) { q.tag(t.name, names...) }}
	}
	field, ok := i.times[c.Field.Name]
	low, high := -never, never
	if ok && len(c.Values) == 1 {
		low, high = store.CeilMicros(c.Values[0].At), micros(c.Values[0].At)
	} else if field, ok = i.numbers[c.Field.Name]; ok && len(c.Values) == 1 {
		n := int64(min(max(c.Values[0].Number, float64(-never)), float64(never)))
		low, high = n-1, n+1 // whatever the fraction
	}
	if !ok {
		return clause{}
	}
	switch c.Op {
	case filter.Eq:
		low, high = min(low, high), max(low, high)
	case filter.Gt, filter.Gte:
		low, high = min(low, high), never
	case filter.Lt, filter.Lte:
		low, high = -never, max(low, high)
	default:
		return clause{}
	}
	return clause{add: func(q *query) { q.between(field, number(low), number(high)) }}
}

// noTag is a tag that no row has.
const noTag = "_none"

// The field of metadata is that of the names of entities, which is tags as well and of
// which rows of facts and episodes have no other use. It holds a tag for each leaf, and one that tells
// such rows from those of earlier versions, which have none. A row of very many leaves
// has a tag that stands for all of them.
const (
	metadataTags = "name"
	taggedTag    = "_"
	anyLeafTag   = "_any"
	maxLeaves    = 64
)

// leafTag is the tag of a value in metadata.
func leafTag(path string, v filter.Value) string { return token("metadata", path, v.Key()) }

// tagsOf are those of a row's metadata.
func tagsOf(metadata map[string]any) string {
	tags := []string{taggedTag}
	filter.Leaves(metadata, func(path string, v filter.Value) bool {
		tags = append(tags, leafTag(path, v))
		return len(tags) <= 1+maxLeaves
	})
	if len(tags) > 1+maxLeaves {
		return taggedTag + "," + anyLeafTag
	}
	slices.Sort(tags) // a map has no order, and equal rows are written alike
	return strings.Join(slices.Compact(tags), ",")
}

// hasMetadata keeps rows whose tags say that their metadata matches c, and rows without
// tags.
func (q *query) hasMetadata(c filter.Cond) *query {
	names := []string{q.param(anyLeafTag)}
	for _, v := range c.Values {
		names = append(names, q.param(leafTag(c.Field.Path, v)))
	}
	return q.clause("(@" + metadataTags + ":{" + strings.Join(names, "|") + "}|-@" + metadataTags + ":{" + q.param(taggedTag) + "})")
}
