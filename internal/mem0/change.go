package mem0

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"palimpsest/internal/filter"
	"palimpsest/pkg/api"
	"palimpsest/pkg/scope"
)

// message is the answer of most changes.
type message struct {
	Message string `json:"message"`
}

// updateBody changes what it names. A null expiration_date removes it.
type updateBody struct {
	Text           *string         `json:"text"`
	Metadata       map[string]any  `json:"metadata"`
	Timestamp      json.RawMessage `json:"timestamp"`
	ExpirationDate json.RawMessage `json:"expiration_date"`
}

// update answers with the memory after the change.
func update(c *call) (any, error) {
	var b updateBody
	if err := c.body(&b); err != nil {
		return nil, err
	}
	return c.update(c.PathValue("id"), b)
}

func (c *call) update(id string, b updateBody) (Memory, error) {
	const tries = 4
	for try := 1; ; try++ {
		m, err := c.updateOnce(id, b)
		var p *api.Problem
		if !errors.As(err, &p) || p.Code != api.CodeFactConflict || try == tries {
			return m, err
		}
	}
}

// updateOnce fails with a conflict if a change without a text meets a concurrent
// change: it writes the text that it has read.
func (c *call) updateOnce(id string, b updateBody) (Memory, error) {
	old, err := c.Fact(c.Context(), id, 0)
	if err != nil {
		return Memory{}, err
	}
	correct, err := b.correction(old)
	if err != nil {
		return Memory{}, err
	}
	var revision uint64
	if b.Text == nil {
		revision = old.Revision
	}
	w, err := c.Correct(c.Context(), old.ID, revision, correct)
	if err != nil {
		return Memory{}, err
	}
	if w.Fact != nil {
		return viewMemory(*w.Fact), nil
	}
	// The change is in the stream and will be applied.
	old.Text = correct.Text
	if correct.Metadata != nil {
		old.Metadata = correct.Metadata
	}
	return viewMemory(old), nil
}

func (b updateBody) correction(old api.Fact) (api.Correct, error) {
	out := api.Correct{Text: old.Text}
	if b.Text != nil {
		out.Text = *b.Text
	}
	metadata, expires := told(old.Metadata), text(old.Metadata, filter.Mem0Expires)
	if b.Metadata != nil {
		metadata = b.Metadata
	}
	if len(b.ExpirationDate) > 0 {
		var date *string
		if err := json.Unmarshal(b.ExpirationDate, &date); err != nil {
			return out, invalid("expiration_date is not a text")
		}
		var err error
		if expires, err = day(date); err != nil {
			return out, err
		}
	}
	if b.Metadata != nil || len(b.ExpirationDate) > 0 {
		if out.Metadata = kept(metadata, text(old.Metadata, filter.Mem0App), expires); out.Metadata == nil {
			out.Metadata = map[string]any{}
		}
	}
	if raw := timestamp(b.Timestamp); len(raw) > 0 {
		var v any
		_ = json.Unmarshal(raw, &v) // it is a part of a body that was decoded
		at, ok := instant(v)
		if !ok {
			return out, invalid("timestamp is neither a date nor unix seconds")
		}
		out.EventTime = &at
	}
	return out, nil
}

// remove deletes one memory; its history stays.
func remove(c *call) (any, error) {
	_, err := c.Delete(c.Context(), c.PathValue("id"), 0)
	return message{"Memory deleted successfully!"}, err
}

// reset answers once no read finds a memory; the erasure goes on.
func reset(c *call) (any, error) {
	if _, err := c.Reset(c.Context(), ""); err != nil {
		return nil, err
	}
	return message{"Memory reset successfully!"}, nil
}

// removeAll deletes the memories that fulfil all that the query names: ids and
// filters.
func removeAll(c *call) (any, error) {
	query := c.URL.Query()
	b := readBody{entityMembers: entitiesOf(query)}
	if written := query.Get("filters"); written != "" {
		var err error
		if b.Filters, err = writtenFilters(written); err != nil {
			return nil, err
		}
	}
	if err := c.removeAll(b); err != nil {
		return nil, err
	}
	return message{"Memories deleted successfully!"}, nil
}

// writtenFilters reads filters that arrive as JSON, or as Python writes a dictionary.
func writtenFilters(written string) (filters map[string]any, err error) {
	if json.Unmarshal([]byte(written), &filters) == nil {
		return filters, nil
	}
	filters = nil
	if err := json.Unmarshal([]byte(dictionary(written)), &filters); err != nil {
		return nil, invalid("filters cannot be read: %v", err)
	}
	return filters, nil
}

// dictionary turns Python's spelling of a dictionary of texts into JSON.
func dictionary(written string) string {
	out := make([]byte, 0, len(written))
	var quote byte
	for i := 0; i < len(written); i++ {
		b := written[i]
		switch {
		case b == '\\' && quote != 0 && i+1 < len(written):
			i++
			if written[i] != '\'' {
				out = append(out, '\\')
			}
			out = append(out, written[i])
		case quote == 0 && (b == '\'' || b == '"'):
			quote = b
			out = append(out, '"')
		case quote != 0 && b == quote:
			quote = 0
			out = append(out, '"')
		case b == '"':
			out = append(out, '\\', '"')
		default:
			out = append(out, b)
		}
	}
	return string(out)
}

func (c *call) removeAll(b readBody) error {
	f, err := b.conditions()
	if err != nil {
		return err
	}
	if f.rest == nil {
		sel := f.selector()
		_, err := c.DeleteScope(c.Context(), scope.Selector{User: sel.User, Agent: sel.Agent, Session: sel.Session}, "")
		return err
	}
	var ids []string
	if err := c.each(f, func(m Memory) { ids = append(ids, m.ID) }); err != nil {
		return err
	}
	for _, id := range ids {
		if _, err := c.drop(id); err != nil {
			return err
		}
	}
	return nil
}

// drop deletes a memory, and reports whether there was one: another request may
// have deleted it.
func (c *call) drop(id string) (deleted bool, err error) {
	_, err = c.Delete(c.Context(), id, 0)
	var p *api.Problem
	if errors.As(err, &p) && p.Code == api.CodeNotFound {
		return false, nil
	}
	return err == nil, err
}

// batch is the body of a change of several memories.
type batch struct {
	Memories []struct {
		ID string `json:"memory_id"`
		updateBody
	} `json:"memories"`
}

func (c *call) batch() (b batch, err error) {
	const most = 1000
	if err := c.body(&b); err != nil {
		return b, err
	}
	if len(b.Memories) == 0 || len(b.Memories) > most {
		return b, invalid("memories has %d elements, outside 1 to %d", len(b.Memories), most)
	}
	for i, m := range b.Memories {
		if m.ID == "" {
			return b, invalid("memories[%d].memory_id is empty", i)
		}
	}
	return b, nil
}

// updateBatch changes several memories, in order. The first failure stops it.
func updateBatch(c *call) (any, error) {
	b, err := c.batch()
	if err != nil {
		return nil, err
	}
	for _, m := range b.Memories {
		if _, err := c.update(m.ID, m.updateBody); err != nil {
			return nil, err
		}
	}
	return message{"Successfully updated " + count(len(b.Memories))}, nil
}

// removeBatch deletes several memories, and counts them. One that is unknown, or
// deleted already, is passed over.
func removeBatch(c *call) (any, error) {
	b, err := c.batch()
	if err != nil {
		return nil, err
	}
	n := 0
	for _, m := range b.Memories {
		deleted, err := c.drop(m.ID)
		if err != nil {
			return nil, err
		}
		if deleted {
			n++
		}
	}
	return message{"Successfully deleted " + count(n)}, nil
}

// removeEntity deletes the memories of one entity.
func removeEntity(c *call) (any, error) { return c.removeEntity(c.PathValue("name")) }

// removeEntityByID is removeEntity of older clients, by the id that [entities] gives.
func removeEntityByID(c *call) (any, error) {
	name, ok := strings.CutPrefix(c.PathValue("id"), c.PathValue("type")+":")
	if !ok {
		return nil, errNoSuchEntity
	}
	return c.removeEntity(name)
}

var errNoSuchEntity = &failure{http.StatusNotFound, "Entity not found!"}

func (c *call) removeEntity(name string) (any, error) {
	members := map[string]entityMembers{"user": {User: name}, "agent": {Agent: name}, "app": {App: name}, "run": {Run: name}}
	who, known := members[c.PathValue("type")]
	if !known || name == anyEntity { // it would delete the memories of all
		return nil, errNoSuchEntity
	}
	if err := c.removeAll(readBody{entityMembers: who}); err != nil {
		return nil, err
	}
	return message{"Entity deleted successfully!"}, nil
}
