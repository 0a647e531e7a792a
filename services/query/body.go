package query

import (
	"context"
	"errors"
	"net/http"
	"reflect"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"palimpsest/pkg/api"
	"palimpsest/pkg/events"
)

// Unread is an input's body, which [read] decodes strictly in place of the router,
// with any content type: `curl -d` declares JSON as a form. It is exported because
// the router ignores unexported parts of inputs.
type Unread struct {
	RawBody []byte
}

// register adds an operation. The errors of its handler are answered as problems.
func register[I, O any](s *Service, a huma.API, op huma.Operation, handle func(context.Context, *I) (*O, error)) {
	huma.Register(a, op, func(ctx context.Context, in *I) (*O, error) {
		out, err := handle(ctx, in)
		if err != nil {
			return nil, s.problem(ctx, err)
		}
		return out, nil
	})
}

// registerBody adds an operation that takes its body raw, and documents it as a T.
// The schema is put in afterwards: the router would check bodies against one
// that it knew of, and by rules of its own.
func registerBody[T, I, O any](s *Service, a huma.API, op huma.Operation, handle func(context.Context, *I) (*O, error)) {
	op.RequestBody = &huma.RequestBody{}
	register(s, a, op, handle)
	schemas := a.OpenAPI().Components.Schemas
	schema := schemas.Schema(reflect.TypeFor[T](), true, "")
	schemas.SchemaFromRef(schema.Ref).AdditionalProperties = false
	op.RequestBody.Content = map[string]*huma.MediaType{"application/json": {Schema: schema}}
}

// received returns the body of a request and its project.
func received[T any](s *Service, p ProjectParam, in Unread) (body T, project string, err error) {
	if body, err = read[T](in.RawBody); err == nil {
		project, err = s.project(p)
	}
	return body, project, err
}

// read decodes a body: duplicate keys, trailing data, wrong types, deep nesting
// and unknown members are refused by field.
func read[T any](body []byte) (T, error) {
	var v T
	if err := readInto(body, "", &v); err != nil {
		return v, err
	}
	return v, checkMembers(body, "", reflect.TypeFor[T]())
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
	if field == "data" || field == "" { // the whole value
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
