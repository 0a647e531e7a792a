package extract

import (
	"maps"
	"slices"

	"palimpsest/internal/memory"
	"palimpsest/pkg/events"
)

// Plain reports whether an episode is to be read: its publisher neither said in
// metadata what it states or what shall come of it, nor wants it verbatim.
func Plain(e memory.Episode) bool {
	named := func(key string) bool { s, _ := e.Metadata[key].(string); return s != "" }
	return !e.Verbatim && !named(events.MetaIntent) && !(named(events.MetaSubject) && named(events.MetaPredicate))
}

// meanings are the metadata keys that are not copied to facts.
var meanings = []string{
	events.MetaIntent, events.MetaReplaces, events.MetaSubject, events.MetaPredicate, events.MetaObject, events.MetaTimezone,
}

// Inherited is the metadata that facts of an episode have from it; nil for none.
func Inherited(e memory.Episode) map[string]any {
	out := maps.Clone(e.Metadata)
	maps.DeleteFunc(out, func(k string, _ any) bool { return slices.Contains(meanings, k) })
	if len(out) == 0 {
		return nil
	}
	return out
}
