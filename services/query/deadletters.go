package query

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"palimpsest/internal/pipeline"
	"palimpsest/pkg/api"
)

// DeadLetters is the role of the runtime that administers refused messages.
type DeadLetters interface {
	List(ctx context.Context, f pipeline.LetterFilter, after uint64, limit int) ([]pipeline.Letter, uint64, error)
	Show(ctx context.Context, sequence uint64) (pipeline.Letter, error)
	Retry(ctx context.Context, sequence uint64) error
	Drop(ctx context.Context, sequence uint64) error
}

func (s *Service) deadLetterRoutes(a huma.API) {
	op := func(id, method, path, summary string) huma.Operation {
		return huma.Operation{OperationID: id, Method: method, Path: path, Summary: summary, Tags: []string{"dead letters"}}
	}
	register(s, a, op("list-dead-letters", http.MethodGet, "/v1/deadletters", "List refused messages, oldest first"), s.listLetters)
	register(s, a, op("get-dead-letter", http.MethodGet, "/v1/deadletters/{sequence}", "Read one with its body"), s.getLetter)
	register(s, a, op("retry-dead-letter", http.MethodPost, "/v1/deadletters/{sequence}/retry", "Hand one to its service again"), s.retryLetter)
	register(s, a, op("drop-dead-letter", http.MethodDelete, "/v1/deadletters/{sequence}", "Forget one"), s.dropLetter)
}

type listLettersInput struct {
	ProjectParam
	Service string `query:"service" doc:"Of one service."`
	User    string `query:"user" doc:"Of one user."`
	Code    string `query:"code" doc:"Of one code."`
	After   uint64 `query:"after" doc:"Continue after this sequence."`
	Limit   int    `query:"limit" doc:"1 to 1000; 100 unless given."`
}

type letterPage struct{ Body api.DeadLetterPage }

func (s *Service) listLetters(ctx context.Context, in *listLettersInput) (*letterPage, error) {
	n, err := limit(in.Limit, 100)
	if err != nil {
		return nil, err
	}
	// Letters whose subject names no scope belong to no project: unless one is
	// asked for, all are listed.
	deadLetters, next, err := s.deps.Letters.List(ctx,
		pipeline.LetterFilter{Service: in.Service, Project: in.Project, User: in.User, Code: in.Code}, in.After, n)
	if err != nil {
		return nil, err
	}
	page := api.DeadLetterPage{Letters: []api.DeadLetter{}, Next: next}
	for _, l := range deadLetters {
		view := viewLetter(l)
		view.Headers, view.Data = nil, nil
		page.Letters = append(page.Letters, view)
	}
	return &letterPage{page}, nil
}

type letterInput struct {
	ProjectParam
	Sequence uint64 `path:"sequence" doc:"Position in the stream of dead letters."`
}

// letter returns the letter that in names. A request that names a project sees only
// the letters of the project.
func (s *Service) letter(ctx context.Context, in *letterInput) (pipeline.Letter, error) {
	l, err := s.deps.Letters.Show(ctx, in.Sequence)
	if err == nil && in.Project != "" && l.Scope.Project != in.Project {
		err = pipeline.ErrNoLetter
	}
	return l, err
}

type deadLetter struct{ Body api.DeadLetter }

func (s *Service) getLetter(ctx context.Context, in *letterInput) (*deadLetter, error) {
	l, err := s.letter(ctx, in)
	if err != nil {
		return nil, letterProblem(err)
	}
	return &deadLetter{viewLetter(l)}, nil
}

type settleLetterInput struct {
	ProjectParam
	KeyHeader
	Sequence uint64 `path:"sequence" doc:"Position in the stream of dead letters."`
}

type settledLetter = reply[api.Settled]

func (s *Service) retryLetter(ctx context.Context, in *settleLetterInput) (*settledLetter, error) {
	return s.settleLetter(ctx, in, "retried", s.deps.Letters.Retry)
}

func (s *Service) dropLetter(ctx context.Context, in *settleLetterInput) (*settledLetter, error) {
	return s.settleLetter(ctx, in, "dropped", s.deps.Letters.Drop)
}

func (s *Service) settleLetter(
	ctx context.Context, in *settleLetterInput, action string, do func(context.Context, uint64) error,
) (*settledLetter, error) {
	project, err := s.project(in.ProjectParam)
	if err != nil {
		return nil, err
	}
	route := fmt.Sprintf("%s letter %d", action, in.Sequence)
	out, err := keep(ctx, s, project, route, in.Key, nil, func(attempt) (*settledLetter, error) {
		if _, err := s.letter(ctx, &letterInput{in.ProjectParam, in.Sequence}); err != nil {
			return nil, err
		}
		if err := do(ctx, in.Sequence); err != nil {
			return nil, err
		}
		return &settledLetter{Status: http.StatusOK, Body: &api.Settled{Sequence: in.Sequence, Action: action}}, nil
	})
	if err != nil {
		return nil, letterProblem(err)
	}
	return out, nil
}

func letterProblem(err error) error {
	switch {
	case errors.Is(err, pipeline.ErrNoLetter):
		return api.NewProblem(http.StatusNotFound, api.CodeNotFound, "sequence", "there is no such dead letter")
	case errors.Is(err, pipeline.ErrClipped):
		return api.NewProblem(http.StatusConflict, api.CodeNotRetriable, "",
			"only the first part of the message is kept, and its stream holds it no more: publish it anew and drop the letter")
	case errors.Is(err, pipeline.ErrCommitted):
		return api.NewProblem(http.StatusConflict, api.CodeNotRetriable, "",
			"the message is an effect, which AUDIT holds already: the store copies it from there when the program starts")
	case errors.Is(err, pipeline.ErrUnfit):
		return api.NewProblem(http.StatusConflict, api.CodeNotRetriable, "", "%v: publish it anew and drop the letter", err)
	case errors.Is(err, pipeline.ErrRemembered):
		return api.NewProblem(http.StatusServiceUnavailable, api.CodeStreamUnavailable, "", "the stream takes the message for the one refused a moment ago")
	}
	return err
}

func viewLetter(l pipeline.Letter) api.DeadLetter {
	return api.DeadLetter{
		Sequence: l.Sequence, Service: l.Service, Stream: l.Stream, MessageAt: l.MessageBuried.Sequence, Subject: l.Subject,
		Kind: string(l.MessageKind), Code: l.Code, Field: l.Field, Reason: l.Reason, Causes: l.Causes, Attempts: l.Attempts,
		Size: l.Size, SHA256: l.SHA256, Truncated: l.Truncated, BuriedAt: l.BuriedAt, Headers: l.Headers, Data: l.Data,
	}
}
