package query

import (
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"palimpsest/internal/lex"
	"palimpsest/internal/mcp"
	"palimpsest/internal/mem0"
	"palimpsest/pkg/api"
)

func (s *Service) routes() (http.Handler, error) {
	answerWithProblems()
	mux := http.NewServeMux()
	t := &routeTable{mux: mux, patterns: map[string][]string{}}
	config := huma.DefaultConfig("Palimpsest", s.deps.Version)
	config.Info.Description = "Long-term memory for AI agents. Errors are RFC 9457 problem documents with a stable code."
	config.CreateHooks = nil // no $schema members in answers
	config.AllowAdditionalPropertiesByDefault = true
	// The router would describe itself at the first request, unsynchronised,
	// and by pages that load their scripts from elsewhere.
	config.OpenAPIPath, config.DocsPath, config.SchemasPath = "", "", ""
	a := humago.New(mux, config)
	a.UseMiddleware(onlyAllowed, onlyDeclared)
	s.episodeRoutes(a)
	s.searchRoutes(a)
	s.contextRoutes(a)
	s.factRoutes(a)
	s.graphRoutes(a)
	s.commandRoutes(a)
	s.feedbackRoutes(a)
	s.undoRoutes(a)
	s.quarantineRoutes(a)
	s.writeRoutes(a)
	s.holdRoutes(a)
	s.ruleRoutes(a)
	s.operationRoutes(a)
	s.streamRoutes(a)
	s.reportRoutes(a)
	if err := describe(t, a.OpenAPI()); err != nil {
		return nil, err
	}
	t.handle("GET /metrics", "GET /metrics", s.deps.Metrics)
	t.handle("/mcp", "/mcp", mcp.Handler(mux, s.deps.Version, s.deps.Logger))
	for _, r := range mem0.Routes(mux, s.deps.Logger) {
		t.handle(r.Name, r.Pattern, r.Handler)
	}
	t.handle(anyRoute, anyRoute, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { unknownRoute(mux, w, r) }))
	s.patterns = t.patterns
	return s.deps.Gate.Handler(mux), t.complete()
}

// anyRoute matches what no other pattern does.
const anyRoute = "/"

// unknownRoute says whether the path or only its method is unknown.
func unknownRoute(mux *http.ServeMux, w http.ResponseWriter, r *http.Request) {
	var allowed []string
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		other := r.Clone(r.Context())
		other.Method = method
		if _, pattern := mux.Handler(other); pattern != anyRoute {
			allowed = append(allowed, method)
		}
	}
	if len(allowed) == 0 {
		writeProblem(w, api.NewProblem(http.StatusNotFound, api.CodeNotFound, "",
			"no route %s %s; see /openapi.json", lex.Clip(r.Method), lex.Clip(r.URL.EscapedPath())))
		return
	}
	w.Header().Set("Allow", strings.Join(allowed, ", "))
	writeProblem(w, api.NewProblem(http.StatusMethodNotAllowed, api.CodeMethodNotAllowed, "",
		"%s is not allowed here: %s", lex.Clip(r.Method), strings.Join(allowed, ", ")))
}
