package query

import (
	"context"
	"net/http"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"palimpsest/internal/lex"
	"palimpsest/internal/store"
	"palimpsest/pkg/api"
	"palimpsest/pkg/events"
)

func (s *Service) commandRoutes(a huma.API) {
	op := func(id, method, path, summary string) huma.Operation {
		return huma.Operation{OperationID: id, Method: method, Path: path, Summary: summary, Tags: []string{"facts"}}
	}
	registerBody[api.Remember](s, a, op("remember", http.MethodPost, "/v1/facts", "State a fact"), s.remember)
	registerBody[api.Correct](s, a, op("correct", http.MethodPost, "/v1/facts/{id}/correct", "Give a fact a new version"), s.correct)
	register(s, a, op("confirm", http.MethodPost, "/v1/facts/{id}/confirm", "Confirm a fact: it no longer decays"), s.confirm)
	register(s, a, op("restore", http.MethodPost, "/v1/facts/{id}/restore", "Bring a closed fact back"), s.restore)
	register(s, a, op("delete-fact", http.MethodDelete, "/v1/facts/{id}", "Close a fact; its history stays"), s.deleteFact)
	register(s, a, op("delete-scope", http.MethodDelete, "/v1/scopes", "Close every fact of a user, an agent or a session, or erase a user"), s.deleteScope)
	register(s, a, op("reset", http.MethodPost, "/v1/reset", "Erase every user of the project, and close what names none; needs query.allow_reset"), s.reset)
	register(s, a, op("erasure", http.MethodGet, "/v1/erasures/{id}", "How far an erasure is, and its receipt"), s.erasure)
}

func etag(revision uint64) string { return `"` + strconv.FormatUint(revision, 10) + `"` }

// CommandParams is what every command on one fact takes.
type CommandParams struct {
	FactParam
	KeyHeader
	IfMatch string `header:"If-Match" doc:"The revision that was seen; another one by now is a conflict (409)."`
}

func (in *CommandParams) expected() (map[string]uint64, error) {
	if in.IfMatch == "" || in.IfMatch == "*" {
		return nil, nil //nolint:nilnil // nothing expected is no error
	}
	revision, err := strconv.ParseUint(strings.Trim(in.IfMatch, `"`), 10, 64)
	if err != nil {
		return nil, invalid("If-Match", "%q is not a revision", lex.Clip(in.IfMatch))
	}
	return map[string]uint64{in.ID: revision}, nil
}

type rememberInput struct {
	ProjectParam
	KeyHeader
	Unread
}

func (s *Service) remember(ctx context.Context, in *rememberInput) (*written, error) {
	body, project, err := received[api.Remember](s, in.ProjectParam, in.Unread)
	if err != nil {
		return nil, err
	}
	owner := body.In(project)
	if err := owner.Validate(); err != nil {
		return nil, err
	}
	candidate, err := s.stated(body)
	if err != nil {
		return nil, err
	}
	return s.once(ctx, project, "POST /v1/facts", in.Key, in.RawBody, func(a attempt) (*written, error) {
		candidate.ID = events.HashID(a.correlation, "candidate")
		return s.command(ctx, a, events.CommandRequested{
			Header:     events.Header{Scope: owner.Fact()},
			CommandRef: events.CommandRef{RequestID: a.correlation, Op: events.OpRemember},
			Candidate:  &candidate, Session: owner.Session,
		})
	})
}

type correctInput struct {
	CommandParams
	Unread
}

func (s *Service) correct(ctx context.Context, in *correctInput) (*written, error) {
	body, err := read[api.Correct](in.RawBody)
	if err != nil {
		return nil, err
	}
	if err := s.checkCorrect(body); err != nil {
		return nil, err
	}
	return s.onFact(ctx, &in.CommandParams, in.RawBody, events.OpCorrect, func(f store.Fact) *events.Candidate {
		c := corrected(f, body, s.deps.Now())
		return &c
	})
}

func (s *Service) confirm(ctx context.Context, in *CommandParams) (*written, error) {
	return s.onFact(ctx, in, nil, events.OpConfirm, nil)
}

func (s *Service) restore(ctx context.Context, in *CommandParams) (*written, error) {
	return s.onFact(ctx, in, nil, events.OpRestore, nil)
}

func (s *Service) deleteFact(ctx context.Context, in *CommandParams) (*written, error) {
	return s.onFact(ctx, in, nil, events.OpDelete, nil)
}

// onFact runs a command on one fact of the caller's project. Only restore may name a
// closed fact, and a repeated request whose fact was closed meanwhile.
func (s *Service) onFact(
	ctx context.Context, in *CommandParams, body []byte, op events.CommandOp, bring func(store.Fact) *events.Candidate,
) (*written, error) {
	sel, err := s.within(ctx, &in.FactParam)
	if err != nil {
		return nil, err
	}
	expected, err := in.expected()
	if err != nil {
		return nil, err
	}
	asked := append([]byte(in.IfMatch+"\n"), body...)
	return s.once(ctx, sel.Project, string(op)+" "+in.ID, in.Key, asked, func(a attempt) (*written, error) {
		lookup := s.known
		if op == events.OpRestore || a.again {
			lookup = s.deps.Store.Fact
		}
		f, err := lookup(ctx, sel, in.ID)
		if err != nil {
			return nil, err
		}
		c := events.CommandRequested{
			Header:     events.Header{Scope: f.Scope},
			CommandRef: events.CommandRef{RequestID: a.correlation, Op: op, IfMatch: expected},
			FactID:     f.ID,
		}
		if bring != nil {
			c.Candidate = bring(f)
			c.Candidate.ID = events.HashID(a.correlation, "candidate")
		}
		return s.command(ctx, a, c)
	})
}
