package mem0

import (
	"log/slog"
	"net/http"
	"slices"
	"strings"
)

// Hosted and Compat are the mounts of the two families.
const (
	Hosted = "/mem0"
	Compat = "/compat"
)

// Route is one pattern of [http.ServeMux] and its handler.
type Route struct {
	// Name is the family, the method and the path, the same for each mount and
	// spelling.
	Name    string
	Pattern string
	Handler http.Handler
}

// server translates requests into calls of the native handler.
type server struct {
	native http.Handler
	log    *slog.Logger
}

// action answers one request. The value becomes the JSON body.
type action func(*call) (any, error)

// Routes lists the routes of both families under their mounts, and the hosted
// ones at the root too. Each has the spelling with and without the last slash:
// mem0's clients follow no redirect. The HTTP server around them must bound
// bodies, as it does for the native handler.
func Routes(handler http.Handler, log *slog.Logger) []Route {
	s := &server{native: handler, log: log}
	var out []Route
	add := func(family, mount string, table map[string]action) {
		for pattern, a := range table {
			method, path, _ := strings.Cut(pattern, " ")
			h := s.handler(a)
			name := family + " " + pattern
			out = append(out, Route{name, method + " " + mount + path + "/{$}", h})
			if !slices.Contains(native, method+" "+mount+path) {
				out = append(out, Route{name, method + " " + mount + path, h})
			}
		}
	}
	add("hosted", Hosted, hosted)
	add("hosted", "", hosted)
	add("compat", Compat, compat)
	return out
}

// native are the routes at the root that the native API has without the last slash;
// mem0's clients send them with one.
var native = []string{"GET /v1/entities", "POST /v1/feedback"}

// hosted are the routes of the published clients, without the last slash.
var hosted = map[string]action{
	"GET /v1/ping":                             ping,
	"POST /v3/memories/add":                    addLater,
	"POST /v1/memories":                        addLater, // clients before 3.0
	"POST /v3/memories":                        list,
	"POST /v2/memories":                        listAll,
	"GET /v1/memories":                         listAll,
	"POST /v3/memories/search":                 search,
	"POST /v2/memories/search":                 searchBare,
	"POST /v1/memories/search":                 searchBare,
	"GET /v1/memories/{id}":                    get,
	"PUT /v1/memories/{id}":                    update,
	"DELETE /v1/memories/{id}":                 remove,
	"GET /v1/memories/{id}/history":            history,
	"DELETE /v1/memories":                      removeAll,
	"PUT /v1/batch":                            updateBatch,
	"DELETE /v1/batch":                         removeBatch,
	"GET /v1/entities":                         entities,
	"DELETE /v2/entities/{type}/{name}":        removeEntity,
	"DELETE /v1/entities/{type}/{id}":          removeEntityByID,
	"GET /v1/event/{id}":                       event,
	"GET " + projectPath:                       project,
	"POST /v1/feedback":                        feedback,
	"POST /v1/exports":                         absent,
	"POST /v1/exports/get":                     absent,
	"POST /v1/summary":                         absent,
	"GET /v1/events":                           absent,
	"PATCH " + projectPath:                     absent,
	"GET /api/v1/webhooks/projects/{project}":  absent,
	"POST /api/v1/webhooks/projects/{project}": absent,
	"GET /v2/entities/user/{id}/profile":       absent,
	"POST /v2/profiles/jobs":                   absent,
	"GET /v2/profiles/settings":                absent,
	"POST /v2/profiles/settings":               absent,
}

const projectPath = "/api/v1/orgs/organizations/{org}/projects/{project}"

// compat are the routes of a self-hosted server, without the last slash.
var compat = map[string]action{
	"POST /v1/memories":                 addNow,
	"GET /v1/memories":                  listLimited,
	"GET /v1/memories/search":           searchLimited,
	"POST /v1/memories/search":          searchLimited,
	"GET /v1/memories/{id}":             get,
	"PUT /v1/memories/{id}":             update,
	"DELETE /v1/memories/{id}":          remove,
	"DELETE /v1/memories":               removeAll,
	"GET /v1/memories/{id}/history":     history,
	"POST /v1/reset":                    reset,
	"POST /v1/entities":                 graphEntities,
	"GET /v1/entities/{name}/relations": graphRelations,
	"GET /v1/collections":               collections,
	"GET /v1/collections/{name}":        collection,
}
