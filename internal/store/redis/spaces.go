package redis

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"palimpsest/internal/embed"
	"palimpsest/internal/store"
)

// meta is what a generation says of itself: its schema and its vector spaces.
type meta struct {
	Schema int `json:"schema"`
	// Embedder is that of the served space, and Space its number; 0 stands for 1, as
	// an earlier version leaves it.
	Embedder embed.Info `json:"embedder"`
	Space    uint64     `json:"space,omitempty"`
	// Last is the highest number that was given to a space; 0 stands for 1.
	Last uint64 `json:"last,omitempty"`
	// Begun has its number, and may lack its fields in the index. Next is the space
	// under construction, and Dropped are those of which rows may still hold vectors.
	Begun   *space         `json:"begun,omitempty"`
	Next    *space         `json:"next,omitempty"`
	Dropped []droppedSpace `json:"dropped,omitempty"`
}

type space struct {
	ID       uint64     `json:"id"`
	Embedder embed.Info `json:"embedder"`
}

// droppedSpace also says since when, in microseconds: a process that has not heard of
// it yet still searches there.
type droppedSpace struct {
	space
	Since int64 `json:"since"`
}

func (m *meta) served() space { return space{max(m.Space, 1), m.Embedder} }

func (m *meta) last() uint64 { return max(m.Last, 1) }

// all are the space that is served and the one under construction.
func (m *meta) all() []space {
	if m.Next == nil {
		return []space{m.served()}
	}
	return []space{m.served(), *m.Next}
}

// find returns the space of a number, of which 0 is the served one.
func (m *meta) find(id uint64) (space, bool) {
	for _, sp := range m.all() {
		if id == sp.ID || id == 0 {
			return sp, true
		}
	}
	return space{}, false
}

// A space has fields of its own in a row: its vector, its flag, and why it was refused.
// The index gets those of a new space without a look at the rows.
func (sp space) vector() string { return sp.field("v") }
func (sp space) flag() string   { return sp.field("q") }
func (sp space) why() string    { return sp.field("why") }

// fields are as the script that puts vectors takes them.
func (sp space) fields() []any {
	absent := ""
	if sp.ID > 1 {
		absent = number(unseen)
	}
	return []any{sp.vector(), sp.flag(), sp.why(), absent}
}

func (sp space) field(name string) string {
	if sp.ID <= 1 {
		return name
	}
	return name + strconv.FormatUint(sp.ID, 10)
}

// The flag of a row in a space is when its text was flagged as one to embed, or one of
// these. In the first space a row without a flag has no text to embed. In any other it
// is one to look at: rows from before the space, and those of writers who had not
// heard of it, have none. To them, the flag reads as unseen.
const (
	embedded  = 0
	refused   = -1
	incognito = -2 // an incognito episode
	unseen    = 1
)

func (sp space) flagOf(text string) int64 {
	if text == "" && sp.ID > 1 {
		return unseen
	}
	return toInt(text)
}

// lacking are the rows that lack their vector in a space.
func (sp space) lacking() *query {
	q := of(kindFact, kindEpisode)
	if sp.ID <= 1 {
		return q.atLeast(sp.flag(), 1)
	}
	return q.clause(fmt.Sprintf("-@%s:[%d %d]", sp.flag(), incognito, embedded))
}

func (sp space) public() store.Space { return store.Space{ID: sp.ID, Embedder: sp.Embedder} }

// forgetting are the fields that go when a row's text changes. They are also those of
// a space that may be under construction without this process having heard of it.
func (m *meta) forgetting() []any {
	fields := []any{m.served().vector()}
	next := space{ID: m.last() + 1}
	if m.Next != nil {
		fields = append(fields, m.Next.vector(), m.Next.flag())
	}
	return append(fields, next.vector(), next.flag())
}

// Spaces implements [store.VectorSpaces].
func (s *Store) Spaces() store.Spaces {
	m := s.tenure().spaces.Load()
	out := store.Spaces{Served: m.served().public()}
	if m.Next != nil {
		next := m.Next.public()
		out.Next = &next
	}
	return out
}

// ReadSpaces returns the spaces of the generation in use, none where there is no
// generation, and how many texts the one under construction lacks. It changes nothing.
func ReadSpaces(ctx context.Context, cfg Config) (spaces store.Spaces, pending uint64, err error) {
	if err := cfg.Validate(); err != nil {
		return spaces, 0, err
	}
	s := &Store{cfg: cfg.withDefaults(), through: true}
	client, err := connect(s.cfg.URL, nil)
	if err != nil {
		return spaces, 0, err
	}
	defer func() { err = errors.Join(err, explain(client.Close())) }()
	s.client = client
	generation, err := s.call(ctx, "HMGET", s.epochRecordKey(), "generation")
	if err != nil {
		return spaces, 0, err
	}
	t := &tenure{layout: layout{s.cfg.Namespace, toUint(pick([]string{"generation"}, generation)["generation"])}}
	s.held.Store(t)
	m, known, err := s.readMeta(ctx, t.layout)
	if err != nil || !known {
		return spaces, 0, err
	}
	t.spaces.Store(&m)
	if m.Next != nil {
		pending, err = s.count(ctx, m.Next.lacking())
	}
	return s.Spaces(), pending, err
}

func (s *Store) readMeta(ctx context.Context, l layout) (m meta, known bool, err error) {
	m, raw, err := s.readRawMeta(ctx, l)
	return m, raw != "", err
}

func (s *Store) readRawMeta(ctx context.Context, l layout) (m meta, raw string, err error) {
	reply, err := s.call(ctx, "GET", l.shared(keyMeta))
	if err != nil || reply == nil {
		return m, "", err
	}
	raw = text(reply)
	if err := decode("meta", []byte(raw), &m); err != nil {
		return m, raw, err
	}
	if m.Schema > schemaVersion {
		return m, raw, fmt.Errorf("redis: schema %d, this is %d: %w", m.Schema, schemaVersion, store.ErrNewer)
	}
	return m, raw, nil
}

// followSpaces learns what others have made of the spaces. What this process makes of
// them meanwhile is newer.
func (s *Store) followSpaces(ctx context.Context, t *tenure) error {
	before := t.spaces.Load()
	m, known, err := s.readMeta(ctx, t.layout)
	if err == nil && known {
		t.spaces.CompareAndSwap(before, &m)
	}
	return err
}

// changeMeta records what change makes of it, again if another was faster. change
// returns false where there is nothing to do.
func (s *Store) changeMeta(ctx context.Context, t *tenure, change func(m *meta) bool) error {
	for range maxAttempts {
		m, raw, err := s.readRawMeta(ctx, t.layout)
		if err != nil {
			return err
		}
		m.Dropped = slices.Clone(m.Dropped)
		if raw == "" {
			m.Schema = schemaVersion
		}
		if !change(&m) {
			t.spaces.Store(&m)
			return nil
		}
		next, err := json.Marshal(m)
		if err != nil {
			return err
		}
		reply, err := s.run(ctx, swapScript, []string{t.shared(keyMeta)}, raw, string(next))
		if err != nil {
			return err
		}
		if reply == int64(1) {
			t.spaces.Store(&m)
			return nil
		}
	}
	return fmt.Errorf("redis: record vector spaces: others are faster: %w", store.ErrAway)
}

// openSpaces makes the spaces known to the tenure. A generation that knows no embedder
// takes that of the configuration.
func (s *Store) openSpaces(ctx context.Context) error {
	return s.changeMeta(ctx, s.tenure(), func(m *meta) bool {
		if m.Embedder.Dimensions != 0 || m.Embedder == s.cfg.Embedder && m.Space > 0 {
			return false
		}
		m.Embedder, m.Space = s.cfg.Embedder, m.served().ID
		return true
	})
}

// setDimensions fixes the length of vectors by the first that is stored.
func (s *Store) setDimensions(ctx context.Context, t *tenure, n int) error {
	if err := s.changeMeta(ctx, t, func(m *meta) bool {
		if m.Embedder.Dimensions != 0 {
			return false
		}
		m.Embedder.Dimensions = n
		return true
	}); err != nil {
		return err
	}
	return s.addFields(ctx, t, s.vectorField(t.spaces.Load().served())...)
}

// addFields extends the index. No row has the fields yet.
func (s *Store) addFields(ctx context.Context, t *tenure, fields ...any) error {
	_, err := s.call(ctx, append([]any{"FT.ALTER", t.index(), "SKIPINITIALSCAN", "SCHEMA", "ADD"}, fields...)...)
	if err != nil && !strings.Contains(strings.ToLower(err.Error()), "duplicate field") {
		return err
	}
	return nil
}

func (s *Store) count(ctx context.Context, q *query) (uint64, error) {
	a, err := s.search(ctx, s.searchArgs(q, 0))
	return a.total, err
}
