package mcp

import (
	"context"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"palimpsest/pkg/api"
	"palimpsest/pkg/client"
)

// sessionsURI is the resource that lists recent sessions.
const sessionsURI = "palimpsest://sessions"

// recent is how many of the newest messages resources are made of.
const recent = 200

const jsonType = "application/json"

func (s *server) addSessions(to *sdk.Server) {
	const about = "Recent conversations, newest first, with the address of each. Only the 200 newest messages are looked at."
	if s.config.Default != (api.Scope{}) {
		to.AddResource(&sdk.Resource{
			URI: sessionsURI, Name: "recent_sessions", Title: "Recent sessions", MIMEType: jsonType, Description: about,
		}, s.readSessions)
	}
	to.AddResourceTemplate(&sdk.ResourceTemplate{
		URITemplate: sessionsURI + "{?user,agent}", Name: "recent_sessions_of", Title: "Recent sessions of a user", MIMEType: jsonType, Description: about,
	}, s.readSessions)
	to.AddResourceTemplate(&sdk.ResourceTemplate{
		URITemplate: sessionsURI + "/{session}{?user,agent}", Name: "session", Title: "One session", MIMEType: jsonType,
		Description: "The newest messages of one conversation, oldest first, 200 at most.",
	}, s.readSession)
}

// Session is a recent conversation.
type Session struct {
	Session string    `json:"session"`
	User    string    `json:"user,omitempty"`
	Agent   string    `json:"agent,omitempty"`
	Recent  int       `json:"recent_messages"`
	From    time.Time `json:"from"`
	To      time.Time `json:"to"`
	URI     string    `json:"uri"`
}

func (s *server) readSessions(ctx context.Context, req *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
	episodes, err := s.episodes(ctx, req.Params.URI)
	if err != nil {
		return nil, err
	}
	out := []Session{}
	for _, e := range episodes { // newest first
		if e.Session == "" {
			continue
		}
		at := slices.IndexFunc(out, func(o Session) bool { return o.Session == e.Session && o.User == e.User && o.Agent == e.Agent })
		if at < 0 {
			at = len(out)
			out = append(out, Session{Session: e.Session, User: e.User, Agent: e.Agent, To: e.Timestamp, URI: sessionURI(e.Scope)})
		}
		out[at].From = e.Timestamp
		out[at].Recent++
	}
	return content(struct {
		Sessions []Session `json:"sessions"`
	}{out})
}

func (s *server) readSession(ctx context.Context, req *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
	episodes, err := s.episodes(ctx, req.Params.URI)
	if err != nil {
		return nil, err
	}
	if len(episodes) == 0 {
		return nil, sdk.ResourceNotFoundError(req.Params.URI)
	}
	slices.Reverse(episodes)
	return content(struct {
		Messages []Episode `json:"messages"`
	}{each(episodes, viewEpisode)})
}

// episodes returns the newest episodes that a resource is made of, newest first.
func (s *server) episodes(ctx context.Context, uri string) ([]api.Episode, error) {
	whose, ok := parseURI(uri)
	if !ok {
		return nil, sdk.ResourceNotFoundError(uri)
	}
	sel, err := s.reads(whose)
	if err != nil {
		return nil, err
	}
	page, err := s.memory.Recent(ctx, sel.In(""), client.ListEpisodes{Limit: recent})
	return page.Episodes, told(err)
}

// sessionURI is the address of a session; its names are percent-encoded.
func sessionURI(s api.Scope) string {
	query := url.Values{}
	if s.User != "" {
		query.Set("user", s.User)
	}
	if s.Agent != "" {
		query.Set("agent", s.Agent)
	}
	uri := sessionsURI + "/" + url.QueryEscape(s.Session)
	if len(query) > 0 {
		uri += "?" + query.Encode()
	}
	return strings.ReplaceAll(uri, "+", "%20") // a template has no other form of a space
}

// parseURI reads an address; its session is empty in that of all sessions.
func parseURI(uri string) (Whose, bool) {
	u, err := url.Parse(uri)
	if err != nil || u.Scheme+"://"+u.Host != sessionsURI {
		return Whose{}, false
	}
	session, err := url.PathUnescape(strings.TrimPrefix(u.EscapedPath(), "/"))
	query := u.Query()
	out := Whose{Session: session, User: query.Get("user"), Agent: query.Get("agent")}
	query.Del("user")
	query.Del("agent")
	return out, err == nil && len(query) == 0
}

func content(v any) (*sdk.ReadResourceResult, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{Text: string(text)}}}, nil
}
