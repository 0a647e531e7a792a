package filter

import (
	"strings"

	"palimpsest/internal/lex"
)

// Schema is the fields that a filter may name.
type Schema struct {
	fields  map[string]Type
	aliases map[string]string
	// metadata says that metadata.<path> are fields, too.
	metadata bool
}

// Field is a field of a schema, or a path into the metadata. It is comparable.
type Field struct {
	// Name is the canonical name, "metadata" for a path into it.
	Name string
	// Path follows "metadata.". A dot separates keys, or is part of one.
	Path string
	Type Type
}

const metadataField = "metadata"

func (f Field) String() string {
	if f.Name == metadataField {
		return metadataField + "." + f.Path
	}
	return f.Name
}

// Memory is the fields of facts and episodes. Both have those that say who said
// what and when; type tells them apart.
var Memory = Schema{
	metadata: true,
	fields: map[string]Type{
		"type": Text, "id": Text, "text": Text, "user": Text, "agent": Text, "session": Text, "role": Text,
		"event_time": Time, "created_at": Time,

		"kind": Text, "category": Text, "subject": Text, "predicate": Text, "object": Text, "hash": Text,
		"cardinality": Text, "sensitivity": Text, "evidence_quote": Text, "source_type": Text, "rule_id": Text,
		"source_episode_ids": Text, "entity_ids": Text, "supersedes": Text, "superseded_by": Text,
		"revision": Number, "confidence": Number, "access_count": Number, "confirmed": Bool,
		"updated_at": Time, "valid_from": Time, "valid_until": Time, "archived_at": Time, "last_accessed": Time,

		"source_node": Text, "mode": Text, "ordinal": Number,
	},
	// What the API calls the same thing in facts and in episodes has one name.
	aliases: map[string]string{
		"content": "text", "timestamp": "event_time", "arrived_at": "created_at", "source_role": "role", "session_ids": "session",
	},
}

// Episodes is the fields of episodes alone.
var Episodes = Schema{
	metadata: true,
	fields: map[string]Type{
		"id": Text, "text": Text, "user": Text, "agent": Text, "session": Text, "role": Text, "source_node": Text, "mode": Text,
		"event_time": Time, "created_at": Time, "ordinal": Number,
	},
	aliases: map[string]string{"content": "text", "timestamp": "event_time", "arrived_at": "created_at"},
}

// Audit is the fields of audit records.
var Audit = Schema{
	fields: map[string]Type{
		"user": Text, "agent": Text, "session": Text, "revision": Number, "index": Number, "sequence": Number,
		"delta_id": Text, "kind": Text, "reason": Text, "rule": Text, "rule_id": Text, "decided_by": Text,
		"confidence": Number, "fact_id": Text, "request_id": Text, "candidate_id": Text, "correlation_id": Text,
		"source_episode_ids": Text, "event_time": Time, "decided_at": Time, "applied_at": Time,
	},
	aliases: map[string]string{"scope_revision": "revision", "sources": "source_episode_ids"},
}

// Field finds a field by its name or an alias.
func (s Schema) Field(name string) (Field, error) {
	if len(name) > MaxField {
		return Field{}, refuse("the name of a field is %d bytes long, more than %d", len(name), MaxField)
	}
	if path, ok := strings.CutPrefix(name, metadataField+"."); ok && s.metadata {
		switch {
		case path == "":
			return Field{}, refuse("%q names no key of the metadata", name)
		case strings.Count(path, ".") >= maxSteps:
			return Field{}, refuse("%q is more than %d keys deep", lex.Clip(name), maxSteps)
		}
		return Field{Name: metadataField, Path: path}, nil
	}
	if real, ok := s.aliases[name]; ok {
		name = real
	}
	if t, ok := s.fields[name]; ok {
		return Field{Name: name, Type: t}, nil
	}
	if name == metadataField && s.metadata {
		return Field{}, refuse("metadata needs a key, as in metadata.topic")
	}
	return Field{}, refuse("unknown field %q; the nearest known one is %q", lex.Clip(name), lex.Nearest(name, s.names()))
}

func (s Schema) names() []string {
	var names []string
	for name := range s.fields {
		names = append(names, name)
	}
	for name := range s.aliases {
		names = append(names, name)
	}
	return names
}
