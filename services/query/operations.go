package query

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"palimpsest/internal/auth"
	"palimpsest/internal/memory"
	"palimpsest/internal/store"
	"palimpsest/pkg/api"
)

func (s *Service) operationRoutes(a huma.API) {
	get := func(id, path, summary string) huma.Operation {
		return huma.Operation{OperationID: id, Method: http.MethodGet, Path: path, Summary: summary, Tags: []string{"operations"}}
	}
	register(s, a, get("ledger", "/v1/ledger", "Account for every episode"), s.ledger)
	register(s, a, get("digest", "/v1/digest", "Digest of all that is known, in every project of the key"), s.digest)
	register(s, a, get("health", "/healthz", "Whether the process runs"), s.healthz)
	register(s, a, get("ready", "/readyz", "Whether each dependency answers"), s.readyz)
	s.deadLetterRoutes(a)
}

type ledgerInput struct {
	SelectorParams
	Accounts bool `query:"accounts" doc:"One account per scope besides the totals."`
}

type ledger struct{ Body api.Ledger }

func (s *Service) ledger(ctx context.Context, in *ledgerInput) (*ledger, error) {
	sel, err := s.factSelector(in.SelectorParams)
	if err != nil {
		return nil, err
	}
	if sel.All {
		if p := auth.Allow(ctx, auth.Operator); p != nil {
			return nil, p
		}
	}
	accounts, err := s.deps.Store.Accounts(ctx, sel, memory.Readers(s.deps.Rules))
	if err != nil {
		return nil, err
	}
	return &ledger{viewLedger(accounts, in.Accounts)}, nil
}

func viewLedger(accounts []store.Account, each bool) api.Ledger {
	out := api.Ledger{Totals: []api.Account{}, Balanced: true}
	totals := map[string]store.Account{}
	var rules []string
	for _, a := range accounts {
		out.Balanced = out.Balanced && a.Balanced()
		total, ok := totals[a.Rule]
		if !ok {
			rules = append(rules, a.Rule)
			total.Rule = a.Rule
		}
		totals[a.Rule] = total.Plus(a)
		if each {
			out.Accounts = append(out.Accounts, viewAccount(a))
		}
	}
	for _, rule := range rules {
		out.Totals = append(out.Totals, viewAccount(totals[rule]))
	}
	return out
}

func viewAccount(a store.Account) api.Account {
	return api.Account{
		Scope: api.ScopeOf(a.Scope), Rule: a.Rule, Accepted: a.Accepted, Consolidated: a.Consolidated,
		Pending: a.Pending, Skipped: a.Skipped, Candidates: a.Candidates, Decided: a.Decided, Held: a.Held, Dropped: a.Dropped,
	}
}

type digestInput struct {
	Content bool `query:"content" doc:"Leave out wall-clock fields, to compare two installations."`
}

type digest struct{ Body api.Digest }

func (s *Service) digest(ctx context.Context, in *digestInput) (*digest, error) {
	sum, err := store.Digest(ctx, s.deps.Store, memory.ModeOf(in.Content))
	if err != nil {
		return nil, err
	}
	return &digest{api.Digest{Digest: sum, Content: in.Content}}, nil
}

type health struct {
	Body struct {
		Status  string `json:"status" enum:"ok"`
		Version string `json:"version"`
	}
}

func (s *Service) healthz(context.Context, *struct{}) (*health, error) {
	out := &health{}
	out.Body.Status, out.Body.Version = "ok", s.deps.Version
	return out, nil
}

type readiness struct {
	Status int
	Body   api.Readiness
}

func (s *Service) readyz(ctx context.Context, _ *struct{}) (*readiness, error) {
	r := s.deps.Ready(ctx)
	if c := auth.Of(ctx); c.Role < auth.Operator || c.Project != "" {
		r = r.WithoutDetails()
	}
	status := http.StatusOK
	if !r.Ready {
		status = http.StatusServiceUnavailable
	}
	return &readiness{Status: status, Body: r}, nil
}
