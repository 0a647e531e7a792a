package query

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"text/template"

	"github.com/danielgtaylor/huma/v2"
)

// describe serves the API's description, made once: as OpenAPI, and as a page
// that loads nothing from anywhere.
func describe(t *routeTable, o *huma.OpenAPI) error {
	t.described(o)
	describeForms(o)
	describeStatuses(o)
	spec, err := json.Marshal(o)
	if err != nil {
		return fmt.Errorf("describe the API: %w", err)
	}
	docs, err := template.New("docs").Parse(docsPage)
	if err != nil {
		return fmt.Errorf("describe the API: %w", err)
	}
	var page bytes.Buffer
	if err := docs.Execute(&page, struct {
		Info       *huma.Info
		Operations []*huma.Operation
	}{o.Info, operations(o)}); err != nil {
		return fmt.Errorf("describe the API: %w", err)
	}
	serve := func(contentType string, body []byte) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", contentType)
			_, _ = w.Write(body)
		}
	}
	t.handle("GET /openapi.json", "GET /openapi.json", serve("application/openapi+json", spec))
	t.handle("GET /docs", "GET /docs", serve("text/html; charset=utf-8", page.Bytes()))
	return nil
}

// describeForms adds what Go types cannot tell: members that take several forms
// of JSON.
func describeForms(o *huma.OpenAPI) {
	schemas := o.Components.Schemas.Map()
	if r, ok := schemas["Record"]; ok {
		many := r.Properties["messages"]
		one := &huma.Schema{Ref: "#/components/schemas/Message"}
		r.Properties["messages"] = &huma.Schema{Description: many.Description, OneOf: []*huma.Schema{{Type: huma.TypeString}, one, many}}
	}
	if m, ok := schemas["Message"]; ok {
		m.AdditionalProperties = false
		m.Properties["timestamp"] = &huma.Schema{
			Description: m.Properties["timestamp"].Description,
			OneOf:       []*huma.Schema{{Type: huma.TypeString, Format: "date-time"}, {Type: huma.TypeNumber}},
		}
	}
}

// describeStatuses adds the statuses that an operation answers with besides its
// default, by a body of the same form.
func describeStatuses(o *huma.OpenAPI) {
	more := map[string][]int{
		"record": {http.StatusOK}, "remember": {http.StatusCreated, http.StatusAccepted}, "ready": {http.StatusServiceUnavailable},
		"correct": {http.StatusAccepted}, "confirm": {http.StatusAccepted}, "restore": {http.StatusAccepted},
		"delete-fact": {http.StatusAccepted}, "delete-scope": {http.StatusAccepted},
		"release-hold": {http.StatusAccepted},
		"dismiss-hold": {http.StatusAccepted},
	}
	for _, op := range operations(o) {
		for _, status := range more[op.OperationID] {
			other := *op.Responses[strconv.Itoa(op.DefaultStatus)]
			other.Description = http.StatusText(status)
			op.Responses[strconv.Itoa(status)] = &other
		}
	}
}

// operations lists the routes by path, then method.
func operations(o *huma.OpenAPI) []*huma.Operation {
	var all []*huma.Operation
	for _, item := range o.Paths {
		for _, op := range []*huma.Operation{item.Get, item.Post, item.Put, item.Patch, item.Delete} {
			if op != nil {
				all = append(all, op)
			}
		}
	}
	slices.SortFunc(all, func(a, b *huma.Operation) int {
		return strings.Compare(a.Path+" "+a.Method, b.Path+" "+b.Method)
	})
	return all
}

// docsPage escapes each value itself. The package html/template would do it too, and
// adds 170 kB to the program.
const docsPage = `<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{{html .Info.Title}}</title>
<style>
body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}
h2{font-size:1rem;margin:2rem 0 0}code{font-family:ui-monospace,monospace}td{padding:0 1rem 0 0;vertical-align:top}
</style>
<h1>{{html .Info.Title}} {{html .Info.Version}}</h1>
<p>{{html .Info.Description}} The whole description is <a href="/openapi.json">/openapi.json</a>.</p>
{{range .Operations}}<h2><code>{{html .Method}} {{html .Path}}</code></h2>
<p>{{html .Summary}}.{{with .RequestBody}}{{range .Content}} Body: <code>{{html .Schema.Ref}}</code>.{{end}}{{end}}</p>
{{with .Parameters}}<table>{{range .}}<tr><td><code>{{html .Name}}</code></td><td>{{html .In}}</td><td>{{html .Description}}</td></tr>
{{end}}</table>{{end}}
{{end}}</html>
`
