package mcp

import (
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/url"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"palimpsest/internal/httpserver"
	"palimpsest/pkg/api"
	"palimpsest/pkg/client"
)

// Handler serves MCP over streamable HTTP without sessions: each request stands
// for itself, so that nothing is kept between them and any process answers. The
// query parameters project, user, agent and session are the defaults of calls.
//
// Tools call native in the same process. The HTTP server around it must bound
// bodies and refuse web pages, as it does for native.
func Handler(native http.Handler, version string, log *slog.Logger) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		project, whose, err := defaults(r.URL.RawQuery)
		if err != nil {
			refuse(w, err)
			return
		}
		memory, err := client.New("http://localhost", client.Project(project), client.HTTP(&http.Client{Transport: httpserver.Inside(r.Context(), native)}))
		if err != nil {
			refuse(w, err)
			return
		}
		streamable(New(memory, Config{Version: version, Default: whose, Log: log}), false).ServeHTTP(w, r)
	})
}

// streamable serves s over streamable HTTP. With sessions, s may send requests and
// notifications to its clients; it needs them only if it sends any.
func streamable(s *sdk.Server, sessions bool) http.Handler {
	return sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, &sdk.StreamableHTTPOptions{
		Stateless: !sessions, JSONResponse: !sessions, PropagateRequestCancellation: true,
		// The server around it has both bounds, and settings for them.
		MaxRequestBodyBytes: -1, DisableLocalhostProtection: true,
	})
}

func refuse(w http.ResponseWriter, err error) {
	p := api.NewProblem(http.StatusBadRequest, api.CodeInvalidField, "query", "%s", err.Error())
	w.Header().Set("Content-Type", p.ContentType(""))
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p) // fails only if the client has gone
}

// defaults reads the query of the endpoint's address.
func defaults(query string) (project string, whose api.Scope, err error) {
	given, err := url.ParseQuery(query)
	if err != nil {
		return "", whose, err
	}
	into := map[string]*string{"project": &project, "user": &whose.User, "agent": &whose.Agent, "session": &whose.Session}
	for name, values := range given {
		at, known := into[name]
		if !known || len(values) != 1 {
			return "", whose, errQuery
		}
		*at = values[0]
	}
	return project, whose, nil
}

// errQuery: the address of the endpoint has a parameter that means nothing.
var errQuery = errors.New("project, user, agent and session are taken, each once")
