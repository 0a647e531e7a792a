package query

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"palimpsest/internal/lex"
	"palimpsest/internal/store"
	"palimpsest/pkg/api"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// defaultEpisodes is how many episodes a read returns that names no limit.
const defaultEpisodes = 20

// source is the CloudEvents source of events from HTTP.
const source = "palimpsest/http"

func (s *Service) episodeRoutes(a huma.API) {
	registerBody[api.Record](s, a, huma.Operation{
		OperationID: "record", Method: http.MethodPost, Path: "/v1/episodes", Tags: []string{"episodes"},
		Summary: "Record what was said", DefaultStatus: http.StatusAccepted,
	}, s.record)
	register(s, a, huma.Operation{
		OperationID: "recent", Method: http.MethodGet, Path: "/v1/episodes", Tags: []string{"episodes"},
		Summary: "Read what was said, newest first",
	}, s.recent)
	registerBody[api.EndSession](s, a, huma.Operation{
		OperationID: "end-session", Method: http.MethodPost, Path: "/v1/sessions/{id}/end", Tags: []string{"episodes"},
		Summary: "End a session", DefaultStatus: http.StatusAccepted,
	}, s.endSession)
}

type recentInput struct {
	SelectorParams
	Limit         int    `query:"limit" doc:"1 to 1000; 20 unless given."`
	After         string `query:"after" doc:"Exclusive; RFC 3339, YYYY-MM-DD, an ISO week (2026-W19), or a name: last_week, last_month, yesterday, today."`
	Before        string `query:"before" doc:"Exclusive; as after. A name means its first moment."`
	Filters       string `query:"filters" doc:"A filter: {field, operator, value}, {AND: […]}, {OR: […]} or {NOT: …}. Operators: eq, ne, gt, gte, lt, lte, in, nin, contains, icontains, exists. Fields: those of facts and episodes, and metadata.<path>."`
	Entity        string `query:"entity" doc:"Only episodes that facts about the entity of that name or alias came from."`
	EpisodeWindow string `query:"episode_window" doc:"Only episodes of the last days (30d) or of a duration (12h)."`
	Cursor        string `query:"cursor" doc:"Continue where the previous page ended."`
	At            string `query:"at" doc:"Read-your-writes token."`
}

type episodePage struct{ Body api.EpisodePage }

func (s *Service) recent(ctx context.Context, in *recentInput) (*episodePage, error) {
	q, sel, err := s.recentQuery(in)
	if err != nil {
		return nil, err
	}
	stale, err := s.fresh(ctx, sel.Project, in.At)
	if err != nil {
		return nil, err
	}
	narrow := narrowing{filters: json.RawMessage(in.Filters), entity: in.Entity, window: in.EpisodeWindow, episodes: true}
	if q.Filter, err = s.matching(ctx, sel, narrow, s.deps.Now()); err != nil {
		return nil, err
	}
	n := q.Limit
	q.Limit = oneMore(n)
	episodes, err := s.deps.Store.Recent(ctx, sel, q)
	if err != nil {
		return nil, err
	}
	if episodes, err = s.withIncognito(ctx, sel, q, episodes); err != nil {
		return nil, err
	}
	episodes, more := page(episodes, n)
	out := api.EpisodePage{Episodes: []api.Episode{}, Stale: stale}
	for _, e := range episodes {
		out.Episodes = append(out.Episodes, viewEpisode(e))
	}
	if more {
		out.Next = seal(store.CursorOf(episodes[n-1]))
	}
	return &episodePage{out}, nil
}

func (s *Service) recentQuery(in *recentInput) (q store.RecentQuery, sel scope.Selector, err error) {
	if sel, err = s.reads(in.SelectorParams); err != nil {
		return q, sel, err
	}
	if q.Limit, err = limit(in.Limit, defaultEpisodes); err != nil {
		return q, sel, err
	}
	if q.After, err = bound("after", in.After, s.deps.Now()); err != nil {
		return q, sel, err
	}
	if q.Before, err = bound("before", in.Before, s.deps.Now()); err != nil {
		return q, sel, err
	}
	q.Cursor, err = open[store.EpisodeCursor]("cursor", in.Cursor)
	return q, sel, err
}

type endSessionInput struct {
	ProjectParam
	KeyHeader
	Unread
	ID string `path:"id" doc:"The session, percent-encoded."`
}

func (s *Service) endSession(ctx context.Context, in *endSessionInput) (*written, error) {
	body, project, err := received[api.EndSession](s, in.ProjectParam, in.Unread)
	if err != nil {
		return nil, err
	}
	if body.Session != "" && body.Session != in.ID {
		return nil, invalid("session", "differs from the session in the path")
	}
	body.Session = in.ID
	ended := events.SessionEnded{Scope: body.In(project), Cause: events.EndCause(body.Cause)}
	if err := s.checkEnd(&ended); err != nil {
		return nil, err
	}
	return s.once(ctx, project, "POST /v1/sessions/end "+in.ID, in.Key, in.RawBody, func(a attempt) (*written, error) {
		meta := events.Meta{ID: events.HashID(a.correlation), Source: source, CorrelationID: a.correlation}
		if _, err := s.deps.Publisher.Publish(ctx, meta, ended); err != nil {
			return nil, s.unpublished(ctx, "", err)
		}
		return &written{Status: http.StatusAccepted, Body: &api.Written{CorrelationID: a.correlation, Status: statusAccepted}}, nil
	})
}

// checkEnd refuses the causes that only Palimpsest itself can find.
func (s *Service) checkEnd(ended *events.SessionEnded) error {
	switch ended.Cause {
	case "":
		ended.Cause = events.EndExplicit
	case events.EndExplicit, events.EndDisconnect, events.EndTimeout:
	default:
		return invalid("cause", "%q is none of explicit, disconnect, timeout", lex.Clip(string(ended.Cause)))
	}
	if err := ended.Scope.Validate(); err != nil {
		return err
	}
	return ended.Validate()
}
