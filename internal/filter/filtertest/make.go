package filtertest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"palimpsest/internal/filter"
	"palimpsest/internal/memory"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// texts are what filters and rows draw their strings from: the syntax of every
// backend, strings that differ in case alone, dates, and Unicode.
var texts = []string{
	"work", "Work", "WORK", "home", "a", "b", "ab", "a b", "a,b", "it's", `"`, `\`, `\\`, "%", "_", "w%", "w_rk", "*", "wo*",
	"'; DROP TABLE facts; --", "$p0", "@kind:{x}", "x}|{y", "-work", "(work)", "a|b", "a-b", "{", "[0 1]", "?", ":p", "NULL", "null", "true", "1", "1.0",
	"2026-03-01", "2026-03-01T00:00:00Z", "2026-03-01T01:00:00+01:00", "2026-03-02", "2026-03-01T00:00:00.0000005Z", "Straße", "STRASSE", "İstanbul", "ЖУК", "жук", "日本語", "日本", "e\u0301", "é", "🙂",
	"\x01", "a\tb", "\u2028",
}

// keys are those of metadata. Several are hostile to paths, one holds a dot.
var keys = []string{"topic", "tag", "n", "flag", "a", "b", "a.b", "it's", `q"uote`, "sp ace", "$", "[0]", "日本", "Topic", "%", ""}

var numbers = []float64{-1, 0, 0.5, 1, 2, 3, 0.1, 1e10, 9007199254740992, -0.25}

// Base is an instant around which rows and filters have theirs.
var Base = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)

// Source draws filters and rows.
type Source struct{ *rand.Rand }

// New is a source that draws the same for the same seed.
func New(seed uint64) Source { return Source{rand.New(rand.NewPCG(seed, 1))} }

func pick[T any](s Source, list []T) T { return list[s.IntN(len(list))] }

// Instant draws a time near [Base].
func (s Source) Instant() time.Time {
	return Base.Add(time.Duration(s.IntN(5)-2) * 12 * time.Hour).Add(time.Duration(s.IntN(3)-1) * time.Microsecond)
}

// Filter draws a filter over the fields of a schema.
func (s Source) Filter(schema filter.Schema, fields []string) filter.Expr {
	return s.expr(schema, fields, 4)
}

func (s Source) expr(schema filter.Schema, fields []string, depth int) filter.Expr {
	if depth > 1 {
		switch n := s.IntN(10); {
		case n < 2:
			return filter.And(s.list(schema, fields, depth-1))
		case n < 4:
			return filter.Or(s.list(schema, fields, depth-1))
		case n < 5:
			return filter.Not{Expr: s.expr(schema, fields, depth-1)}
		}
	}
	return s.cond(schema, fields)
}

func (s Source) list(schema filter.Schema, fields []string, depth int) []filter.Expr {
	out := make([]filter.Expr, s.IntN(4))
	for i := range out {
		out[i] = s.expr(schema, fields, depth)
	}
	return out
}

var (
	plainOps   = []filter.Op{filter.Eq, filter.Ne, filter.In, filter.Nin, filter.Exists}
	orderedOps = append(slices.Clone(plainOps), filter.Gt, filter.Gte, filter.Lt, filter.Lte)
	textOps    = append(slices.Clone(orderedOps), filter.Contains, filter.IContains)
)

func (s Source) cond(schema filter.Schema, fields []string) filter.Cond {
	name := pick(s, fields)
	if name == "metadata" {
		name = "metadata." + s.path()
	}
	f, err := schema.Field(name)
	if err != nil {
		panic(err)
	}
	c := filter.Cond{Field: f}
	kind := f.Type
	if kind == filter.Any {
		kind = pick(s, []filter.Type{filter.Text, filter.Text, filter.Text, filter.Number, filter.Bool})
	}
	switch kind {
	case filter.Bool:
		c.Op = pick(s, plainOps)
	case filter.Number, filter.Time:
		c.Op = pick(s, orderedOps)
	case filter.Text, filter.Any:
		c.Op = pick(s, textOps)
	}
	n := 1
	switch c.Op {
	case filter.Exists:
		n = 0
	case filter.In, filter.Nin:
		n = s.IntN(4)
	}
	for range n {
		c.Values = append(c.Values, s.value(name, kind))
	}
	return c
}

func (s Source) path() string {
	path := pick(s, keys[:len(keys)-1])
	for s.IntN(4) == 0 {
		path += "." + pick(s, keys)
	}
	return path
}

func (s Source) value(field string, kind filter.Type) filter.Value {
	switch kind {
	case filter.Number:
		return filter.NumberValue(pick(s, numbers))
	case filter.Bool:
		return filter.BoolValue(s.IntN(2) == 0)
	case filter.Time:
		return filter.TimeValue(s.Instant().Add(time.Duration(s.IntN(3)-1) * time.Nanosecond))
	case filter.Text, filter.Any:
	}
	if list, ok := enums[field]; ok && s.IntN(4) > 0 {
		return filter.TextValue(pick(s, list))
	}
	return filter.TextValue(pick(s, texts))
}

// enums are the strings of fields that take no others.
var enums = map[string][]string{
	"type": {"fact", "episode"}, "kind": {"semantic", "procedural", "opinion", "add", "noop"}, "role": {"user", "assistant", "operator"},
	"mode": {"persistent", "backfill"}, "id": {"row-1", "row-2", "row-3"}, "user": {"ann", "it's"}, "agent": {"bot"},
	"sensitivity": {"none", "personal"}, "source_type": {"conversation", "api"},
}

// Text draws a string.
func (s Source) Text() string { return pick(s, texts) }

// Metadata draws a decoded JSON object.
func (s Source) Metadata() map[string]any { return s.object(2) }

func (s Source) object(depth int) map[string]any {
	out := map[string]any{}
	for range s.IntN(5) {
		out[pick(s, keys)] = s.json(depth)
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

func (s Source) json(depth int) any {
	switch n := s.IntN(10); {
	case n < 5:
		return pick(s, texts)
	case n < 6:
		return pick(s, numbers)
	case n < 7:
		return s.IntN(2) == 0
	case n < 8 && depth > 0:
		return s.object(depth - 1)
	case n < 9 && depth > 0:
		list := make([]any, s.IntN(3))
		for i := range list {
			list[i] = s.json(depth - 1)
		}
		return list
	}
	return nil
}

// Fact draws a fact of that number; every identifier is valid.
func (s Source) Fact(n int) events.Fact {
	text := fmt.Sprintf("The word is %s and %s.", pick(s, texts), pick(s, texts))
	f := events.Fact{
		ID: fmt.Sprintf("row-%d", n), Revision: 1, Kind: events.FactKind(pick(s, enums["kind"][:3])), Category: pick(s, texts), Text: text, Hash: memory.HashText(text),
		Metadata: s.Metadata(), Confidence: float64(s.IntN(5)) / 4, DecayRate: 0, Confirmed: s.IntN(2) == 0,
		EventTime: s.Instant(), CreatedAt: s.Instant(), UpdatedAt: s.Instant(), ValidFrom: Base.Add(-100 * 24 * time.Hour),
		SourceType: events.SourceType(pick(s, enums["source_type"])), SourceRole: events.RoleOperator, RuleID: "rule", SourceEpisodeIDs: []string{"row-1", pick(s, texts[:6])},
	}
	if s.IntN(2) == 0 {
		f.Subject, f.Predicate, f.Object = pick(s, texts), pick(s, texts), pick(s, texts)
		until := Base.Add(1000 * 24 * time.Hour)
		f.ValidUntil = &until
	}
	if s.IntN(2) == 0 {
		f.SessionIDs = []string{pick(s, texts[:8]), "it's"}
		f.Sensitivity = events.Sensitivity(pick(s, enums["sensitivity"]))
	}
	return f
}

// Episode draws an episode of that number within a scope.
func (s Source) Episode(n int, of scope.Scope) memory.Episode {
	of.Session = pick(s, []string{"", "a", "b", "it's", "a,b"})
	if of.User == "" && of.Agent == "" && of.Session == "" {
		of.Session = "a"
	}
	return memory.Episode{
		ID: fmt.Sprintf("row-%d", n), Source: "test", Scope: of, Role: events.Role(pick(s, enums["role"][:2])),
		Content: fmt.Sprintf("The word is %s and %s.", pick(s, texts), pick(s, texts)), Timestamp: s.Instant(), ArrivedAt: s.Instant(),
		SourceNode: pick(s, []string{"", "node", "it's"}), Metadata: s.Metadata(), Mode: events.Mode(pick(s, enums["mode"])), Seq: uint64(n),
	}
}
