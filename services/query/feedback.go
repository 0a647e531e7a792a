package query

import (
	"context"
	"net/http"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"

	"palimpsest/pkg/api"
	"palimpsest/pkg/events"
)

func (s *Service) feedbackRoutes(a huma.API) {
	registerBody[api.Feedback](s, a, huma.Operation{
		OperationID: "feedback", Method: http.MethodPost, Path: "/v1/feedback", Tags: []string{"facts"},
		Summary: "Rate a fact or an answer; no fact changes",
	}, s.feedback)
}

// maxFeedback bounds the reason of a rating, in characters.
const maxFeedback = 2000

type feedbackInput struct {
	ProjectParam
	KeyHeader
	Unread
}

func (s *Service) feedback(ctx context.Context, in *feedbackInput) (*written, error) {
	body, project, err := received[api.Feedback](s, in.ProjectParam, in.Unread)
	if err != nil {
		return nil, err
	}
	rating := &events.Rating{Value: events.RatingValue(body.Rating), EpisodeID: body.EpisodeID, Reason: body.Reason}
	switch rating.Value {
	case events.RatingPositive, events.RatingNegative, events.RatingVeryNegative, events.RatingNone:
	default:
		return nil, invalid("rating", "is none of positive, negative, very_negative, none")
	}
	if (body.FactID == "") == (body.EpisodeID == "") {
		return nil, invalid("fact_id", "give exactly one of fact_id and episode_id")
	}
	if utf8.RuneCountInString(body.Reason) > maxFeedback {
		return nil, invalid("reason", "is longer than %d characters", maxFeedback)
	}
	return s.once(ctx, project, "POST /v1/feedback", in.Key, in.RawBody, func(a attempt) (*written, error) {
		c := events.CommandRequested{CommandRef: events.CommandRef{RequestID: a.correlation, Op: events.OpRate, Rating: rating}}
		if err := s.rated(ctx, project, body, &c); err != nil {
			return nil, err
		}
		return s.command(ctx, a, c)
	})
}

// rated finds what a rating is of, and names it in the command. A fact that was closed
// since it was read can be rated, too.
func (s *Service) rated(ctx context.Context, project string, body api.Feedback, c *events.CommandRequested) error {
	if body.FactID != "" {
		f, err := s.factOf(ctx, &FactParam{ProjectParam: ProjectParam{Project: project}, ID: body.FactID})
		c.Scope, c.FactID = f.Scope, f.ID
		return err
	}
	owner := body.In(project)
	if err := owner.Validate(); err != nil {
		return err
	}
	c.Scope = owner.Fact()
	said, err := s.deps.Store.EpisodesByID(ctx, c.Scope, []string{body.EpisodeID})
	if err == nil && len(said) == 0 {
		return api.NewProblem(http.StatusNotFound, api.CodeNotFound, "episode_id", "no message of that user and agent has this id")
	}
	return err
}
