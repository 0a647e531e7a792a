package query

import (
	"fmt"
	"net/http"
	"slices"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"palimpsest/internal/auth"
)

// roles are what a caller has to be for each route. [New] refuses a service with
// a route that is missing here.
//
// A route of mem0's clients and a tool of MCP call native routes in the name of
// their caller, whose roles hold there again.
var roles = map[string]auth.Role{
	anyRoute:            auth.Anonymous, // it only says that there is nothing
	"GET /healthz":      auth.Anonymous,
	"GET /readyz":       auth.Anonymous, // which tells its details to operators of all projects
	"GET /openapi.json": auth.Anonymous,
	"GET /docs":         auth.Anonymous,

	"POST /v1/search":                   auth.Reader,
	"POST /v1/context":                  auth.Reader,
	"GET /v1/episodes":                  auth.Reader,
	"GET /v1/writes/{at}":               auth.Reader,
	"GET /v1/facts":                     auth.Reader,
	"GET /v1/facts/weak":                auth.Reader,
	"GET /v1/facts/{id}":                auth.Reader,
	"GET /v1/facts/{id}/history":        auth.Reader,
	"GET /v1/facts/{id}/explain":        auth.Reader,
	"GET /v1/holds":                     auth.Reader,
	"GET /v1/entities":                  auth.Reader,
	"GET /v1/entities/{name}":           auth.Reader,
	"GET /v1/entities/{name}/relations": auth.Reader,
	"GET /v1/entities/{name}/timeline":  auth.Reader,
	"GET /v1/stats":                     auth.Reader,
	"GET /v1/ledger":                    auth.Reader, // that of a whole project is for operators
	"GET /v1/rules":                     auth.Reader,
	"GET /v1/export":                    auth.Reader,
	"/mcp":                              auth.Reader,

	"POST /v1/episodes":           auth.Writer,
	"POST /v1/sessions/{id}/end":  auth.Writer,
	"POST /v1/facts":              auth.Writer,
	"POST /v1/facts/{id}/correct": auth.Writer,
	"POST /v1/facts/{id}/confirm": auth.Writer,
	"POST /v1/facts/{id}/restore": auth.Writer,
	"DELETE /v1/facts/{id}":       auth.Writer,
	"DELETE /v1/scopes":           auth.Writer, // who erases must be an admin
	"POST /v1/feedback":           auth.Writer,
	"POST /v1/holds/{id}/release": auth.Writer,
	"POST /v1/holds/{id}/dismiss": auth.Writer,

	"GET /v1/erasures/{id}": auth.Admin,
	"POST /v1/reset":        auth.Admin,

	"GET /metrics":                          auth.Operator,
	"GET /v1/digest":                        auth.Operator,
	"GET /v1/audit":                         auth.Operator,
	"GET /v1/reports":                       auth.Operator,
	"GET /v1/reports/{name}":                auth.Operator,
	"POST /v1/rules/{id}/run":               auth.Operator,
	"POST /v1/rules/{id}/dry-run":           auth.Operator,
	"POST /v1/undo":                         auth.Operator,
	"POST /v1/quarantine":                   auth.Operator,
	"POST /v1/quarantine/{id}/release":      auth.Operator,
	"GET /v1/deadletters":                   auth.Operator,
	"GET /v1/deadletters/{sequence}":        auth.Operator,
	"POST /v1/deadletters/{sequence}/retry": auth.Operator,
	"DELETE /v1/deadletters/{sequence}":     auth.Operator,

	"hosted GET /v1/ping":                                              auth.Reader,
	"hosted POST /v3/memories":                                         auth.Reader,
	"hosted POST /v2/memories":                                         auth.Reader,
	"hosted GET /v1/memories":                                          auth.Reader,
	"hosted POST /v3/memories/search":                                  auth.Reader,
	"hosted POST /v2/memories/search":                                  auth.Reader,
	"hosted POST /v1/memories/search":                                  auth.Reader,
	"hosted GET /v1/memories/{id}":                                     auth.Reader,
	"hosted GET /v1/memories/{id}/history":                             auth.Reader,
	"hosted GET /v1/entities":                                          auth.Reader,
	"hosted GET /v1/event/{id}":                                        auth.Reader,
	"hosted GET /v1/events":                                            auth.Reader,
	"hosted POST /v1/exports/get":                                      auth.Reader,
	"hosted POST /v1/summary":                                          auth.Reader,
	"hosted GET /v2/entities/user/{id}/profile":                        auth.Reader,
	"hosted GET /v2/profiles/settings":                                 auth.Reader,
	"hosted POST /v3/memories/add":                                     auth.Writer,
	"hosted POST /v1/memories":                                         auth.Writer,
	"hosted PUT /v1/memories/{id}":                                     auth.Writer,
	"hosted DELETE /v1/memories/{id}":                                  auth.Writer,
	"hosted DELETE /v1/memories":                                       auth.Writer,
	"hosted PUT /v1/batch":                                             auth.Writer,
	"hosted DELETE /v1/batch":                                          auth.Writer,
	"hosted DELETE /v2/entities/{type}/{name}":                         auth.Writer,
	"hosted DELETE /v1/entities/{type}/{id}":                           auth.Writer,
	"hosted POST /v1/feedback":                                         auth.Writer,
	"hosted POST /v1/exports":                                          auth.Writer,
	"hosted POST /v2/profiles/jobs":                                    auth.Writer,
	"hosted POST /v2/profiles/settings":                                auth.Writer,
	"hosted GET /api/v1/webhooks/projects/{project}":                   auth.Writer,
	"hosted POST /api/v1/webhooks/projects/{project}":                  auth.Writer,
	"hosted GET /api/v1/orgs/organizations/{org}/projects/{project}":   auth.Reader,
	"hosted PATCH /api/v1/orgs/organizations/{org}/projects/{project}": auth.Writer,

	"compat GET /v1/memories":                  auth.Reader,
	"compat GET /v1/memories/search":           auth.Reader,
	"compat POST /v1/memories/search":          auth.Reader,
	"compat GET /v1/memories/{id}":             auth.Reader,
	"compat GET /v1/memories/{id}/history":     auth.Reader,
	"compat GET /v1/entities/{name}/relations": auth.Reader,
	"compat GET /v1/collections":               auth.Reader,
	"compat GET /v1/collections/{name}":        auth.Reader,
	"compat POST /v1/memories":                 auth.Writer,
	"compat PUT /v1/memories/{id}":             auth.Writer,
	"compat DELETE /v1/memories/{id}":          auth.Writer,
	"compat DELETE /v1/memories":               auth.Writer,
	"compat POST /v1/entities":                 auth.Writer,
	"compat POST /v1/reset":                    auth.Admin,
}

// routeTable collects the routes of a service as they are added.
type routeTable struct {
	mux *http.ServeMux
	// names are the patterns of the mux by route, and the routes without a role.
	patterns map[string][]string
	missing  []string
}

// handle adds a route for callers of its role.
func (t *routeTable) handle(route, pattern string, h http.Handler) {
	role := t.role(route, pattern)
	t.mux.Handle(pattern, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p := auth.Allow(r.Context(), role); p != nil {
			auth.Refuse(w, p)
			return
		}
		h.ServeHTTP(w, r)
	}))
}

// role is that of a route, which answers at a pattern; a route without one is
// kept closed, and noted.
func (t *routeTable) role(route, pattern string) auth.Role {
	role, ok := roles[route]
	if !ok {
		t.missing = append(t.missing, route)
		return auth.Admin
	}
	t.patterns[route] = append(t.patterns[route], pattern)
	return role
}

// described notes the operations of the API and adds to each which role it takes.
func (t *routeTable) described(o *huma.OpenAPI) {
	o.Components.SecuritySchemes = map[string]*huma.SecurityScheme{
		"bearer": {Type: "http", Scheme: "bearer", Description: "An API key. The scheme Token does as well."},
		"apiKey": {Type: "apiKey", In: "header", Name: "X-API-Key", Description: "The same key in a header of its own."},
	}
	for _, op := range operations(o) {
		route := op.Method + " " + op.Path
		if role := t.role(route, route); role > auth.Anonymous {
			op.Security = []map[string][]string{{"bearer": {role.String()}}, {"apiKey": {role.String()}}}
		}
	}
}

// complete is an error where a route has no role.
func (t *routeTable) complete() error {
	if len(t.missing) == 0 {
		return nil
	}
	slices.Sort(t.missing)
	return fmt.Errorf("routes have no role: %q", slices.Compact(t.missing))
}

// onlyAllowed refuses callers whose role is too low for a native operation.
func onlyAllowed(c huma.Context, next func(huma.Context)) {
	role, ok := roles[c.Operation().Method+" "+c.Operation().Path]
	if !ok {
		role = auth.Admin
	}
	if p := auth.Allow(c.Context(), role); p != nil {
		_, w := humago.Unwrap(c)
		auth.Refuse(w, p)
		return
	}
	next(c)
}
