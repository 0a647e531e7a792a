package events

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// generator writes the schema of a payload from its Go type. Its fields hold what
// the types do not express: closed sets of values, and the tagged union of deltas.
type generator struct {
	docs map[string]string // "Type" or "Type.Field" → its comment
	defs map[string]any
}

type object = map[string]any

func newGenerator(t *testing.T) generator {
	t.Helper()
	g := generator{docs: map[string]string{}}
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".go") || strings.HasSuffix(f.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), f.Name(), nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, g.note)
	}
	return g
}

// note keeps the comments of struct types and of their fields.
func (g generator) note(n ast.Node) bool {
	decl, ok := n.(*ast.GenDecl)
	if !ok || decl.Tok != token.TYPE {
		return true
	}
	spec := decl.Specs[0].(*ast.TypeSpec) //nolint:forcetypeassert // by decl.Tok
	g.docs[spec.Name.Name] = decl.Doc.Text()
	if s, ok := spec.Type.(*ast.StructType); ok {
		for _, f := range s.Fields.List {
			for _, name := range f.Names {
				g.docs[spec.Name.Name+"."+name.Name] = f.Doc.Text() + f.Comment.Text()
			}
		}
	}
	return false
}

func (g generator) doc(name string) string {
	text := strings.NewReplacer("[", "", "]", "").Replace(g.docs[name])
	return strings.Join(strings.Fields(text), " ")
}

func (g generator) schema(p Payload) object {
	g.defs = object{}
	t := reflect.TypeOf(p)
	s := g.structOf(t)
	s["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	s["$id"] = "urn:palimpsest:schema:" + string(p.Kind())
	s["title"] = string(p.Kind())
	if len(g.defs) > 0 {
		s["$defs"] = g.defs
	}
	return s
}

func (g generator) structOf(t reflect.Type) object {
	properties, required := object{}, map[string]bool{}
	g.addFields(t, properties, required)
	s := object{"type": "object", "properties": properties}
	if doc := g.doc(t.Name()); doc != "" {
		s["description"] = doc
	}
	if len(required) > 0 {
		s["required"] = slices.Sorted(maps.Keys(required))
	}
	return s
}

func (g generator) addFields(t reflect.Type, properties object, required map[string]bool) {
	for i := range t.NumField() {
		if f := t.Field(i); f.Anonymous {
			g.addFields(f.Type, properties, required)
		}
	}
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" || name == "-" {
			continue
		}
		optional := options != ""
		s := maps.Clone(g.typeOf(f.Type, optional))
		if doc := g.doc(t.Name() + "." + f.Name); doc != "" {
			s["description"] = doc
		}
		maps.Copy(s, more(t.Name()+"."+f.Name))
		properties[name] = s
		if !optional {
			required[name] = true
		}
	}
}

// more is what the types do not say of a field.
func more(field string) object {
	switch field {
	case "EpisodeRecorded.Content":
		return object{"minLength": 1}
	case "EpisodeRecorded.Role":
		return object{"enum": []Role{RoleUser, RoleAssistant, RoleSystem, RoleTool}}
	case "EpisodeRecorded.Mode":
		return object{"enum": []Mode{ModePersistent, ModeIncognito, ModeBackfill}}
	case "SessionEnded.Cause":
		return object{"enum": []EndCause{EndExplicit, EndDisconnect, EndTimeout, EndIdle, EndSwitched}}
	case "CommandRef.Op":
		return object{"enum": []CommandOp{OpRemember, OpCorrect, OpConfirm, OpRestore, OpDelete, OpDeleteScope, OpUndo, OpErase}}
	case "deltaWire.Confidence":
		return object{"description": "0 to 1", "minimum": 0, "maximum": 1}
	}
	return nil
}

func (g generator) typeOf(t reflect.Type, optional bool) object {
	switch t {
	case reflect.TypeFor[time.Time]():
		return object{"type": "string", "format": "date-time"}
	case reflect.TypeFor[Timestamp]():
		return object{"anyOf": []object{{"type": "string", "format": "date-time"}, {"type": "number"}}}
	case reflect.TypeFor[Deltas]():
		return object{"type": "array", "items": g.delta()}
	case reflect.TypeFor[Applied]():
		g.delta()
		return g.ref(reflect.TypeFor[appliedWire](), "Applied")
	case reflect.TypeFor[deltaWire]():
		return g.delta()
	case reflect.TypeFor[[]byte]():
		return object{"type": []string{"string", "null"}, "contentEncoding": "base64"}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return g.typeOf(t.Elem(), optional)
	case reflect.String:
		return object{"type": "string"}
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Int:
		return object{"type": "integer"}
	case reflect.Uint64:
		return object{"type": "integer", "minimum": 0}
	case reflect.Float64:
		return object{"type": "number"}
	case reflect.Slice:
		return object{"type": nullable("array", optional), "items": g.typeOf(t.Elem(), true)}
	case reflect.Map:
		s := object{"type": nullable("object", optional)}
		if t.Elem().Kind() != reflect.Interface {
			s["additionalProperties"] = g.typeOf(t.Elem(), true)
		}
		return s
	case reflect.Struct:
		return g.ref(t, t.Name())
	}
	panic("no schema for " + t.String())
}

// nullable allows for the nil slices and maps that are written as null.
func nullable(name string, optional bool) any {
	if optional {
		return name
	}
	return []string{name, "null"}
}

func (g generator) ref(t reflect.Type, name string) object {
	if _, ok := g.defs[name]; !ok {
		g.defs[name] = nil // ends recursion
		g.defs[name] = g.structOf(t)
	}
	return object{"$ref": "#/$defs/" + name}
}

// delta is the tagged union: the required and the forbidden members of each kind.
func (g generator) delta() object {
	if _, ok := g.defs["Delta"]; ok {
		return object{"$ref": "#/$defs/Delta"}
	}
	g.defs["Delta"] = nil
	s := g.structOf(reflect.TypeFor[deltaWire]())
	s["description"] = g.doc("Delta")
	payload := g.defs["FactPayload"].(object) //nolint:forcetypeassert // made by structOf
	var members []object
	for _, name := range []string{"fact", "entity", "edge", "hold"} {
		members = append(members, object{"required": []string{name}})
	}
	payload["oneOf"] = members
	branch := func(k DeltaKind, required []string, without ...string) object {
		never := object{}
		for _, name := range without {
			never[name] = false
		}
		never["kind"] = object{"const": k}
		return object{"properties": never, "required": append([]string{"kind"}, required...)}
	}
	s["oneOf"] = []object{
		branch(DeltaAdd, []string{"fact_payload"}, "replaces", "about"),
		branch(DeltaUpdate, []string{"fact_payload", "replaces"}, "about"),
		branch(DeltaDelete, []string{"replaces"}, "fact_payload", "about"),
		branch(DeltaNoop, nil, "fact_payload", "replaces"),
	}
	s["anyOf"] = []object{
		{"required": []string{"source_episode_ids"}, "properties": object{"source_episode_ids": object{"minItems": 1}}},
		{"required": []string{"request_id"}, "properties": object{"request_id": object{"minLength": 1}}},
	}
	g.defs["Delta"] = s
	return object{"$ref": "#/$defs/Delta"}
}

func (g generator) text(t *testing.T, p Payload) []byte {
	t.Helper()
	out, err := json.MarshalIndent(g.schema(p), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return append(out, '\n')
}
