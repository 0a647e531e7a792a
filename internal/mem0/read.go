package mem0

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"palimpsest/internal/lex"
	"palimpsest/pkg/api"
	"palimpsest/pkg/client"
	"palimpsest/pkg/scope"
)

// readBody is the body of a list or a search. The members above the first blank
// line narrow both.
type readBody struct {
	entityMembers
	Filters     map[string]any `json:"filters"`
	Metadata    map[string]any `json:"metadata"`
	Categories  []string       `json:"categories"`
	Keywords    string         `json:"keywords"`
	StartDate   string         `json:"start_date"`
	EndDate     string         `json:"end_date"`
	ShowExpired bool           `json:"show_expired"`
	Fields      []string       `json:"fields"`

	Query         string          `json:"query"`
	TopK          int             `json:"top_k"`
	Limit         int             `json:"limit"`
	Threshold     float64         `json:"threshold"`
	ReferenceDate json.RawMessage `json:"reference_date"`
	OutputFormat  string          `json:"output_format"`
	Version       string          `json:"version"`
}

// conditions joins all that narrows a read.
func (b *readBody) conditions() (*conditions, error) {
	all := []any{}
	if b.Filters != nil {
		all = append(all, b.Filters)
	}
	ids := map[string]any{}
	for name, id := range b.ids() {
		ids[name] = id
	}
	all = append(all, ids)
	if len(b.Metadata) > 0 {
		all = append(all, map[string]any{"metadata": b.Metadata})
	}
	if len(b.Categories) > 0 {
		all = append(all, map[string]any{"categories": map[string]any{"in": values(b.Categories)}})
	}
	if b.Keywords != "" {
		all = append(all, map[string]any{"keywords": map[string]any{"icontains": b.Keywords}})
	}
	if b.StartDate != "" {
		all = append(all, map[string]any{"created_at": map[string]any{"gte": b.StartDate}})
	}
	if last, err := time.Parse(time.DateOnly, b.EndDate); err == nil { // the whole day
		all = append(all, map[string]any{"created_at": map[string]any{"lt": last.AddDate(0, 0, 1).Format(time.DateOnly)}})
	} else if b.EndDate != "" {
		all = append(all, map[string]any{"created_at": map[string]any{"lte": b.EndDate}})
	}
	return readConditions(map[string]any{"AND": all})
}

func (e entityMembers) ids() map[string]string {
	out := map[string]string{"user_id": e.User, "agent_id": e.Agent, "app_id": e.App, "run_id": e.Run}
	for name, id := range out {
		if id == "" {
			delete(out, name)
		}
	}
	return out
}

func values(texts []string) []any {
	out := make([]any, len(texts))
	for i, t := range texts {
		out[i] = t
	}
	return out
}

// each calls do with all memories that match, newest first.
func (c *call) each(cond *conditions, do func(Memory)) error {
	l := client.ListFacts{Limit: maxLimit, Filters: cond.filters()}
	sel := cond.selector()
	for {
		page, err := c.Facts(c.Context(), scope.Selector{User: sel.User, Agent: sel.Agent, Session: sel.Session, All: sel.All}, l)
		if err != nil {
			return err
		}
		for _, fact := range page.Facts {
			do(cond.seen(fact))
		}
		if l.Cursor = page.Next; l.Cursor == "" {
			return nil
		}
	}
}

// maxLimit is the largest page of the native API.
const maxLimit = 1000

// Page is a page of a list.
type Page struct {
	Count    int     `json:"count"`
	Next     *string `json:"next"`
	Previous *string `json:"previous"`
	Results  []any   `json:"results"`
}

// list answers with a page and the count of all.
func list(c *call) (any, error) {
	var b readBody
	if err := c.body(&b); err != nil {
		return nil, err
	}
	if !b.empty() {
		return nil, invalid("user_id, agent_id, app_id and run_id belong into filters")
	}
	number, size, err := paging(c.URL.Query(), 100)
	if err != nil {
		return nil, err
	}
	all, err := c.listed(b)
	if err != nil {
		return nil, err
	}
	return page(c.Request, all, number, size), nil
}

// listAll is a list of older clients: all memories as an array.
func listAll(c *call) (any, error) {
	b, err := c.listBody()
	if err != nil {
		return nil, err
	}
	return c.listed(b)
}

// listLimited is the list of the compat family.
func listLimited(c *call) (any, error) {
	b, err := c.listBody()
	if err != nil {
		return nil, err
	}
	if b.Limit == 0 {
		b.Limit = 100
	}
	if b.Limit < 0 {
		return nil, invalid("limit: %d is not a positive number", b.Limit)
	}
	all, err := c.listed(b)
	if err != nil {
		return nil, err
	}
	return results(b, all[:min(b.Limit, len(all))]), nil
}

// results wraps a list as its version asks for.
func results(b readBody, all []any) any {
	if b.Version == "v1.0" {
		return all
	}
	return map[string]any{"results": all}
}

// listBody reads members from the body and the query.
func (c *call) listBody() (b readBody, err error) {
	if err = c.body(&b); err != nil {
		return b, err
	}
	query := c.URL.Query()
	b.entityMembers = b.or(entitiesOf(query))
	for name, into := range map[string]*int{"limit": &b.Limit, "top_k": &b.TopK} {
		if text := query.Get(name); text != "" {
			if *into, err = strconv.Atoi(text); err != nil || *into < 1 {
				return b, invalid("%s: %q is not a positive number", name, lex.Clip(text))
			}
		}
	}
	if text := query.Get("filters"); text != "" {
		if err := json.Unmarshal([]byte(text), &b.Filters); err != nil {
			return b, invalid("filters cannot be read: %v", err)
		}
	}
	for name, into := range map[string]*string{"version": &b.Version, "q": &b.Query, "query": &b.Query} {
		if text := query.Get(name); text != "" {
			*into = text
		}
	}
	return b, nil
}

func entitiesOf(query url.Values) entityMembers {
	return entityMembers{query.Get("user_id"), query.Get("agent_id"), query.Get("app_id"), query.Get("run_id")}
}

func (c *call) listed(b readBody) ([]any, error) {
	cond, err := b.conditions()
	if err != nil {
		return nil, err
	}
	all, now := []any{}, time.Now()
	err = c.each(cond, func(m Memory) {
		if b.ShowExpired || !m.expired(now) {
			all = append(all, m.fields(b.Fields))
		}
	})
	return all, err
}

// paging reads the parameters of a page.
func paging(query url.Values, usual int) (number, size int, err error) {
	number, size = 1, usual
	for name, into := range map[string]*int{"page": &number, "page_size": &size} {
		text := query.Get(name)
		if text == "" {
			continue
		}
		if *into, err = strconv.Atoi(text); err != nil || *into < 1 || name == "page_size" && *into > 200 {
			return 0, 0, invalid("%s: %q is outside its range", name, lex.Clip(text))
		}
	}
	return number, size, nil
}

// page cuts a page out of all.
func page(r *http.Request, all []any, number, size int) Page {
	from := min(min(number-1, len(all))*size, len(all)) // the product of a huge number overflows
	to := min(from+size, len(all))
	link := func(n int) *string {
		query := r.URL.Query()
		query.Set("page", strconv.Itoa(n))
		u := "http://" + r.Host + r.URL.EscapedPath() + "?" + query.Encode()
		return &u
	}
	out := Page{Count: len(all), Results: all[from:to]}
	if to < len(all) {
		out.Next = link(number + 1)
	}
	if number > 1 {
		out.Previous = link(number - 1)
	}
	return out
}

// get answers with one memory.
func get(c *call) (any, error) {
	f, err := c.Fact(c.Context(), c.PathValue("id"), 0)
	if err != nil {
		return nil, err
	}
	return viewMemory(f), nil
}

// Event is the state of an add.
type Event struct {
	ID      string    `json:"id"`
	Type    string    `json:"event_type"`
	Status  string    `json:"status"`
	Results []Changed `json:"results"`
}

// event answers with what an add has come to.
func event(c *call) (any, error) {
	id := c.PathValue("id")
	w, err := c.WriteState(c.Context(), id)
	var p *api.Problem
	if errors.As(err, &p) && p.Status == http.StatusBadRequest {
		return nil, &failure{http.StatusNotFound, "Event not found!"}
	}
	if err != nil {
		return nil, err
	}
	out := Event{ID: id, Type: "ADD", Status: "PENDING", Results: viewChanges(w.Results, nil)}
	if w.Status == "done" {
		out.Status = "SUCCEEDED"
	}
	return out, nil
}
