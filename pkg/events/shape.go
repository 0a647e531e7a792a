package events

import (
	"encoding/json"
	"reflect"
	"strings"
	"sync"
	"time"
)

// form is what JSON a Go type is written as.
type form int

const (
	formAny form = iota
	formText
	formBool
	formInt
	formUint
	formFloat
	formBytes // base64 text
	formList
	formTable  // an object with any names
	formObject // an object with known names
	formIgnored
)

// shape is what the strict reader must know of a Go type to name the member
// that does not fit it.
type shape struct {
	form   form
	bits   int
	elem   *shape
	fields map[string]*shape
	// leaf is set for types with an UnmarshalJSON of their own.
	leaf reflect.Type
}

// shaped is implemented by types whose JSON is that of another type.
type shaped interface{ wireShape() reflect.Type }

// shapes remembers what reflection found: derived from types alone, so it holds
// no state that one use could hand another.
var shapes sync.Map // reflect.Type → *shape

func shapeOf(t reflect.Type) *shape {
	if s, ok := shapes.Load(t); ok {
		return s.(*shape) //nolint:forcetypeassert // holds nothing else
	}
	s, _ := shapes.LoadOrStore(t, buildShape(t))
	return s.(*shape) //nolint:forcetypeassert // holds nothing else
}

func buildShape(t reflect.Type) *shape {
	if t.Kind() == reflect.Pointer {
		return shapeOf(t.Elem())
	}
	if w, ok := reflect.Zero(t).Interface().(shaped); ok {
		s := *shapeOf(w.wireShape())
		s.leaf = t
		return &s
	}
	if t == reflect.TypeFor[time.Time]() {
		return &shape{form: formText, leaf: t}
	}
	if reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()) {
		return &shape{leaf: t}
	}
	switch t.Kind() {
	case reflect.String:
		return &shape{form: formText}
	case reflect.Bool:
		return &shape{form: formBool}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return &shape{form: formInt, bits: t.Bits()}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return &shape{form: formUint, bits: t.Bits()}
	case reflect.Float32, reflect.Float64:
		return &shape{form: formFloat, bits: t.Bits()}
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return &shape{form: formBytes, leaf: t}
		}
		return &shape{form: formList, elem: shapeOf(t.Elem())}
	case reflect.Map:
		return &shape{form: formTable, elem: shapeOf(t.Elem())}
	case reflect.Struct:
		s := &shape{form: formObject, fields: make(map[string]*shape)}
		s.addFields(t)
		return s
	}
	return &shape{}
}

// addFields adds those of embedded structs first: a shallower field of the same
// name wins, as in encoding/json.
func (s *shape) addFields(t reflect.Type) {
	for i := range t.NumField() {
		if f := t.Field(i); f.Anonymous && f.Tag.Get("json") == "" {
			s.addFields(f.Type)
		}
	}
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" || name == "-" || !f.IsExported() {
			continue
		}
		s.fields[name] = shapeOf(f.Type)
	}
}
