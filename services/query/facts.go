package query

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"palimpsest/internal/audit"
	"palimpsest/internal/filter"
	"palimpsest/internal/lex"
	"palimpsest/internal/memory"
	"palimpsest/internal/store"
	"palimpsest/pkg/api"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

func (s *Service) factRoutes(a huma.API) {
	get := func(id, path, summary string) huma.Operation {
		return huma.Operation{OperationID: id, Method: http.MethodGet, Path: path, Summary: summary, Tags: []string{"facts"}}
	}
	register(s, a, get("list-facts", "/v1/facts", "List what is known, newest first"), s.listFacts)
	register(s, a, get("list-weak-facts", "/v1/facts/weak", "List what is about to be forgotten, newest first"), s.weakFacts)
	register(s, a, get("get-fact", "/v1/facts/{id}", "Read one fact, or one version of it"), s.getFact)
	register(s, a, get("history", "/v1/facts/{id}/history", "Read all that happened to a fact, oldest first"), s.history)
	register(s, a, get("explain", "/v1/facts/{id}/explain", "Read why a fact is known"), s.explain)
}

type listFactsInput struct {
	SelectorParams
	Limit    int      `query:"limit" doc:"1 to 1000; 100 unless given."`
	Kinds    []string `query:"kinds"`
	Filters  string   `query:"filters" doc:"A filter: {field, operator, value}, {AND: […]}, {OR: […]} or {NOT: …}. Operators: eq, ne, gt, gte, lt, lte, in, nin, contains, icontains, exists. Fields: those of facts and episodes, and metadata.<path>."`
	Entity   string   `query:"entity" doc:"Only facts that mention the entity of that name or alias."`
	ValidAt  string   `query:"valid_at" doc:"What was true then, in the version of then; now unless given."`
	AsOf     string   `query:"as_of" doc:"What was known then, by the audit log: RFC 3339 or YYYY-MM-DD. It takes no entity."`
	Archived bool     `query:"archived" doc:"Archived facts too."`
	Closed   bool     `query:"closed" doc:"Closed and archived facts too."`
	Cursor   string   `query:"cursor"`
	At       string   `query:"at" doc:"Read-your-writes token."`
}

type factPage struct{ Body api.FactPage }

func (s *Service) listFacts(ctx context.Context, in *listFactsInput) (*factPage, error) {
	sel, q, err := s.factQuery(in)
	if err != nil {
		return nil, err
	}
	stale, err := s.fresh(ctx, sel.Project, in.At)
	if err != nil {
		return nil, err
	}
	narrow := narrowing{filters: json.RawMessage(in.Filters), entity: in.Entity}
	if q.Filter, err = s.matching(ctx, sel, narrow, s.deps.Now()); err != nil {
		return nil, err
	}
	n := q.Limit
	q.Limit = oneMore(n)
	now, facts := s.deps.Now(), []store.Fact(nil)
	if in.AsOf == "" {
		facts, err = s.deps.Store.Facts(ctx, sel, q)
	} else {
		now, facts, err = s.factsAsOf(ctx, sel, q, in)
	}
	if err != nil {
		return nil, err
	}
	facts, more := page(facts, n)
	out := api.FactPage{Facts: []api.Fact{}, Stale: stale}
	for _, f := range facts {
		out.Facts = append(out.Facts, viewFact(f, now))
	}
	if more {
		out.Next = seal(store.FactCursor{CreatedAt: facts[n-1].CreatedAt, ID: facts[n-1].ID})
	}
	if in.Cursor == "" {
		out.Warnings, err = s.unread(ctx, sel)
	}
	return &factPage{out}, err
}

// unread warns of a user in whose language no rule pack reads.
func (s *Service) unread(ctx context.Context, sel scope.Selector) ([]string, error) {
	const newest = 20
	if s.deps.Understands == nil || sel.User == nil || *sel.User == "" {
		return nil, nil
	}
	said, err := s.deps.Store.Recent(ctx, sel, store.RecentQuery{Limit: newest})
	if err != nil {
		return nil, err
	}
	var texts []string
	for _, e := range said {
		if e.Role == events.RoleUser {
			texts = append(texts, e.Content)
		}
	}
	if s.deps.Understands(texts) {
		return nil, nil
	}
	return []string{"no rule pack reads the language of this user: messages are stored and found by search, and llm.provider lets a model read facts from them"}, nil
}

func (s *Service) factQuery(in *listFactsInput) (sel scope.Selector, q store.FactQuery, err error) {
	if sel, err = s.reads(in.SelectorParams); err != nil {
		return sel, q, err
	}
	// A fact is not bound to a session: a session selects the facts that it contributed
	// to.
	q.Session, sel.Session = sel.Session, nil
	if q.Limit, err = limit(in.Limit, 100); err != nil {
		return sel, q, err
	}
	for _, k := range in.Kinds {
		if !events.FactKind(k).Valid() {
			return sel, q, invalid("kinds", "%q is not a kind of fact", lex.Clip(k))
		}
		q.Kinds = append(q.Kinds, events.FactKind(k))
	}
	if q.ValidAt, err = instant("valid_at", in.ValidAt); err != nil {
		return sel, q, err
	}
	if q.ValidAt.IsZero() && !in.Closed {
		q.ValidAt = s.deps.Now()
	}
	q.IncludeArchived = in.Archived || in.Closed
	q.Cursor, err = open[store.FactCursor]("cursor", in.Cursor)
	return sel, q, err
}

// FactParam names a fact of the caller's project.
type FactParam struct {
	ProjectParam
	ID string `path:"id" doc:"Identifier of the fact, or its last 8 hex digits."`
}

type getFactInput struct {
	FactParam
	Revision uint64 `query:"revision" doc:"One version; the newest unless given."`
	ValidAt  string `query:"valid_at" doc:"The version that was true then; the newest, if it is true now, unless given."`
	AsOf     string `query:"as_of" doc:"As it was known then, by the audit log: RFC 3339 or YYYY-MM-DD. The version true at valid_at, or else then."`
	At       string `query:"at" doc:"Read-your-writes token."`
}

type fact struct {
	ETag  string `header:"ETag" doc:"The revision, for If-Match."`
	Stale string `header:"Palimpsest-Stale" doc:"true where the write named by at was not visible in time."`
	Body  api.Fact
}

func (s *Service) factAnswer(f store.Fact, stale bool) *fact {
	out := &fact{ETag: etag(f.Revision), Body: viewFact(f, s.deps.Now())}
	if stale {
		out.Stale = "true"
	}
	return out
}

// getFact answers 404 for a fact that is closed, unless one version is named.
func (s *Service) getFact(ctx context.Context, in *getFactInput) (*fact, error) {
	project, err := s.project(in.ProjectParam)
	if err != nil {
		return nil, err
	}
	stale, err := s.fresh(ctx, project, in.At)
	if err != nil {
		return nil, err
	}
	sel, err := s.within(ctx, &in.FactParam)
	if err != nil {
		return nil, err
	}
	switch {
	case in.Revision > 0 && in.ValidAt != "":
		return nil, invalid("valid_at", "names a version, as revision does; leave one out")
	case in.Revision > 0 && in.AsOf != "":
		return nil, invalid("as_of", "names a version, as revision does; leave one out")
	case in.AsOf != "":
		at, f, err := s.factAsOf(ctx, in)
		if err != nil {
			return nil, err
		}
		out := s.factAnswer(f, stale)
		out.Body = viewFact(f, at)
		return out, nil
	}
	if in.Revision > 0 {
		f, err := s.deps.Store.Version(ctx, sel, memory.Address{ID: in.ID, Revision: in.Revision})
		if err != nil {
			return nil, err
		}
		return s.factAnswer(f, stale), nil
	}
	if in.ValidAt != "" {
		f, err := s.trueAt(ctx, sel, in)
		if err != nil {
			return nil, err
		}
		return s.factAnswer(f, stale), nil
	}
	f, err := s.known(ctx, sel, in.ID)
	if err != nil {
		return nil, err
	}
	return s.factAnswer(f, stale), nil
}

// trueAt returns the version of a fact that was true at an instant, or
// [store.ErrNotFound].
func (s *Service) trueAt(ctx context.Context, sel scope.Selector, in *getFactInput) (store.Fact, error) {
	at, err := instant("valid_at", in.ValidAt)
	if err != nil {
		return store.Fact{}, err
	}
	versions, err := s.deps.Store.Versions(ctx, sel, in.ID)
	if err != nil {
		return store.Fact{}, err
	}
	q := store.FactQuery{ValidAt: at, IncludeArchived: true}
	held := q.Held(versions[len(versions)-1:], versions)
	if len(held) == 0 || !q.Keeps(held[0]) {
		return store.Fact{}, store.ErrNotFound
	}
	return held[0], nil
}

// known returns a fact that is valid or archived now, or [store.ErrNotFound].
func (s *Service) known(ctx context.Context, sel scope.Selector, id string) (store.Fact, error) {
	f, err := s.deps.Store.Fact(ctx, sel, id)
	if err == nil && f.ValidUntil != nil && !f.ValidUntil.After(s.deps.Now()) {
		return f, store.ErrNotFound
	}
	return f, err
}

// within returns the project of a fact, and completes a short id in in.
func (s *Service) within(ctx context.Context, in *FactParam) (scope.Selector, error) {
	project, err := s.project(in.ProjectParam)
	if err != nil {
		return scope.Selector{}, err
	}
	in.ID, err = s.wholeFactID(ctx, project, in.ID)
	return scope.Selector{Project: project}, err
}

func (s *Service) factOf(ctx context.Context, in *FactParam) (store.Fact, error) {
	sel, err := s.within(ctx, in)
	if err != nil {
		return store.Fact{}, err
	}
	return s.deps.Store.Fact(ctx, sel, in.ID)
}

type historyInput struct {
	FactParam
	Filters string `query:"filters" doc:"Only changes that match a filter: {field, operator, value}, {AND: […]}, {OR: […]} or {NOT: …}. Operators: eq, ne, gt, gte, lt, lte, in, nin, contains, icontains, exists. Fields: those of audit records."`
}

type history struct{ Body api.History }

func (s *Service) history(ctx context.Context, in *historyInput) (*history, error) {
	matching, err := readFilters([]byte(in.Filters), filter.Audit)
	if err != nil {
		return nil, err
	}
	f, err := s.factOf(ctx, &in.FactParam)
	if err != nil {
		return nil, err
	}
	changes, err := s.changes(ctx, f, matching)
	if err != nil {
		return nil, err
	}
	return &history{api.History{FactID: in.ID, Changes: changes}}, nil
}

// logged reads what the audit log has of a fact, and how far the log goes. While
// it does not answer, AUDIT is read from its begin.
func (s *Service) logged(ctx context.Context, f store.Fact) (records []audit.Record, last uint64) {
	last, err := s.deps.Log.LastSequence(ctx)
	if err == nil {
		records, err = s.deps.Log.History(ctx, f.Scope.Project, f.ID)
	}
	if err != nil {
		s.failed(ctx, err)
		return nil, 0
	}
	return records, last
}

// changes merges the audit log with what AUDIT holds behind it, so that a change
// shows as soon as it is visible. It keeps the changes that match, all for nil.
func (s *Service) changes(ctx context.Context, f store.Fact, matching filter.Expr) ([]api.Change, error) {
	records, last := s.logged(ctx, f)
	out := []api.Change{}
	type place struct {
		revision uint64
		index    int
	}
	seen := map[place]bool{}
	add := func(r audit.Record) {
		at := place{r.Revision, r.Index}
		if r.FactID == f.ID && !seen[at] && (matching == nil || filter.Match(matching, audit.Row(&r))) {
			seen[at] = true
			out = append(out, viewChange(r))
		}
	}
	for _, r := range records {
		add(r)
	}
	for e, err := range s.deps.Journal.ReadScope(ctx, f.Scope, last) {
		if err != nil {
			return nil, err
		}
		for _, r := range audit.Records(e) {
			add(r)
		}
	}
	return out, nil
}

type explanation struct{ Body api.Explanation }

func (s *Service) explain(ctx context.Context, in *FactParam) (*explanation, error) {
	f, err := s.factOf(ctx, in)
	if err != nil {
		return nil, err
	}
	now := s.deps.Now()
	out := api.Explanation{
		Fact: viewFact(f, now), Quote: f.EvidenceQuote,
		Episodes: []api.Episode{}, Versions: []api.Fact{}, Entities: []api.Entity{},
	}
	if err := s.addSources(ctx, f, &out, now); err != nil {
		return nil, err
	}
	if out.Decisions, err = s.changes(ctx, f, nil); err != nil {
		return nil, err
	}
	return &explanation{out}, nil
}

func (s *Service) addSources(ctx context.Context, f store.Fact, out *api.Explanation, now time.Time) error {
	episodes, err := s.deps.Store.EpisodesByID(ctx, f.Scope, f.SourceEpisodeIDs)
	if err != nil {
		return err
	}
	for _, e := range episodes {
		out.Episodes = append(out.Episodes, viewEpisode(e))
	}
	versions, err := s.deps.Store.Versions(ctx, scope.Selector{Project: f.Scope.Project}, f.ID)
	if err != nil {
		return err
	}
	for _, v := range versions {
		if v.Revision < f.Revision {
			out.Versions = append(out.Versions, viewFact(v, now))
		}
	}
	entities, err := s.deps.Store.Entities(ctx, f.Scope, nil)
	if err != nil {
		return err
	}
	for _, e := range entities {
		if slices.Contains(f.EntityIDs, e.ID) {
			out.Entities = append(out.Entities, viewEntity(e))
		}
	}
	return nil
}
