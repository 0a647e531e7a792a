package query

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"palimpsest/internal/lex"
	"palimpsest/pkg/api"
)

// onlyDeclared refuses query parameters and bodies that a /v1 operation does not
// declare. To ignore a misspelled filter would widen a read or a delete.
func onlyDeclared(c huma.Context, next func(huma.Context)) {
	op := c.Operation()
	if strings.HasPrefix(op.Path, "/v1/") {
		r, w := humago.Unwrap(c)
		p := checkQuery(op, r.URL.RawQuery)
		if p == nil && op.RequestBody == nil && r.ContentLength != 0 {
			p = checkNoBody(c)
		}
		if p != nil {
			writeProblem(w, p)
			return
		}
	}
	next(c)
}

// checkQuery refuses unknown parameters, and known ones that are given twice
// where one value counts.
func checkQuery(op *huma.Operation, raw string) *api.Problem {
	if raw == "" {
		return nil
	}
	given, err := url.ParseQuery(raw)
	if err != nil {
		return api.NewProblem(http.StatusBadRequest, api.CodeMalformed, "query", "cannot be read")
	}
	declared := map[string]bool{} // true for those that may be given several times
	for _, p := range op.Parameters {
		if p.In == "query" {
			declared[p.Name] = p.Explode != nil && *p.Explode
		}
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		several, known := declared[name]
		switch {
		case !known:
			return unknown("parameter", "", name, slices.Collect(maps.Keys(declared)))
		case !several && len(given[name]) > 1:
			return invalid(name, "is given twice")
		}
	}
	return nil
}

// Bounds of a body that an operation does not take.
const (
	maxStrayBody      = 64 << 10
	strayBodyPatience = 5 * time.Second
)

// checkNoBody refuses a body with members. An empty object is what some clients
// send in place of no body.
func checkNoBody(c huma.Context) *api.Problem {
	_ = c.SetReadDeadline(time.Now().Add(strayBodyPatience))
	text, err := io.ReadAll(io.LimitReader(c.BodyReader(), maxStrayBody))
	_ = c.SetReadDeadline(time.Time{})
	if err != nil {
		return api.NewProblem(http.StatusBadRequest, api.CodeMalformed, "body", "did not arrive whole")
	}
	if text = bytes.TrimSpace(text); len(text) == 0 {
		return nil
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(text, &members); err != nil {
		return api.NewProblem(http.StatusBadRequest, api.CodeMalformed, "body", "is not taken here")
	}
	if len(members) == 0 {
		return nil
	}
	return unknown("member", "", slices.Min(slices.Collect(maps.Keys(members))), nil)
}

// checkMembers refuses members of an object at path that t does not have.
func checkMembers(object []byte, path string, t reflect.Type) error {
	var members map[string]json.RawMessage
	_ = json.Unmarshal(object, &members) // the caller has decoded it
	known := memberNames(t)
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if !slices.Contains(known, name) {
			return unknown("member", path, name, known)
		}
	}
	return nil
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

// unknown names what is not known, and the nearest name that is.
func unknown(what, path, name string, known []string) *api.Problem {
	field := path + lex.Clip(name)
	if len(known) == 0 {
		return invalid(field, "is an unknown %s; none is taken here", what)
	}
	return invalid(field, "is an unknown %s; the nearest known one is %q", what, lex.Nearest(name, known))
}
