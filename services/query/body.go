package query

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"palimpsest/pkg/api"
	"palimpsest/pkg/events"
)

// Unread is an input's body, read strictly by [read] instead of the router,
// whatever its content type: `curl -d` says that JSON is a form. Like the other
// parts of inputs it is exported because the router sees only what is.
type Unread struct {
	RawBody []byte
}

// register adds an operation that takes its body raw, and documents it as a T.
// The schema is put in afterwards: the router would check bodies against one
// that it knew of, and by rules of its own.
func register[T, I, O any](a huma.API, op huma.Operation, handle func(context.Context, *I) (*O, error)) {
	op.RequestBody = &huma.RequestBody{}
	huma.Register(a, op, handle)
	schema := a.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[T](), true, "")
	op.RequestBody.Content = map[string]*huma.MediaType{"application/json": {Schema: schema}}
}

// read decodes a body: duplicate keys, trailing data, wrong types and deep
// nesting are refused by field; members that mean nothing are named as warnings.
func read[T any](body []byte) (T, []string, error) {
	var v T
	if err := readInto(body, "", &v); err != nil {
		return v, nil, err
	}
	return v, unknownMembers(body, "", reflect.TypeFor[T]()), nil
}

// readInto decodes a part of a body that stands at path.
func readInto(text []byte, path string, v any) error {
	err := events.Unmarshal(text, v)
	if err == nil {
		return nil
	}
	var refused *events.FieldError
	if !errors.As(err, &refused) {
		return api.NewProblem(http.StatusBadRequest, api.CodeMalformed, either(path, "body"), "cannot be read")
	}
	field := refused.Field
	if field == "data" || field == "" { // the whole of what was read
		return api.NewProblem(http.StatusBadRequest, refused.Code, either(path, "body"), "%s", refused.Reason)
	}
	if path != "" && !strings.HasPrefix(field, "[") {
		field = "." + field
	}
	return api.NewProblem(http.StatusBadRequest, refused.Code, path+field, "%s", refused.Reason)
}

func either(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// unknownMembers warns of the members of an object at path that T has not.
func unknownMembers(object []byte, path string, t reflect.Type) []string {
	var members map[string]json.RawMessage
	if json.Unmarshal(object, &members) != nil {
		return nil
	}
	known := memberNames(t)
	var out []string
	for name := range members {
		if !slices.Contains(known, name) {
			out = append(out, "unknown member "+path+clip(name))
		}
	}
	slices.Sort(out)
	return out
}

func memberNames(t reflect.Type) []string {
	var names []string
	for _, f := range reflect.VisibleFields(t) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
			names = append(names, name)
		}
	}
	return names
}
