package consolidator

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"palimpsest/internal/audit"
	"palimpsest/internal/memory"
	"palimpsest/internal/pipeline"
	"palimpsest/internal/store"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	alice    = scope.Scope{Project: "p", User: "alice"}
	noon     = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	errCrash = errors.New("killed")
)

// faults stops the work at one passage of a named step.
type faults struct {
	mu    sync.Mutex
	step  string
	skip  int
	fired bool
}

func (f *faults) at(step string) error {
	if f == nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fired || f.step != step {
		return nil
	}
	if f.skip > 0 {
		f.skip--
		return nil
	}
	f.fired = true
	return errCrash
}

// memoryStore keeps its contract in maps. Roles that the consolidator has no
// use for are left to the embedded nil interface.
type memoryStore struct {
	store.FactReader
	faults *faults

	mu       sync.Mutex
	state    memory.State
	facts    map[string]events.Fact
	versions map[string][]events.Fact
	entities map[string]events.Entity
	holds    map[string]events.Hold
	outcomes []events.Outcome
	skipped  []events.Range // of every rule; what a late batch covers is taken out whole
	touched  []string
	accessed map[string]time.Time
	applied  int
}

func newStore() *memoryStore {
	return &memoryStore{
		state: memory.State{Scope: alice, Watermarks: map[string]uint64{}},
		facts: map[string]events.Fact{}, versions: map[string][]events.Fact{},
		entities: map[string]events.Entity{}, holds: map[string]events.Hold{},
	}
}

// ReadWhole loses every row before the read and reports it afterwards, where the
// fault "lost" is due.
func (m *memoryStore) ReadWhole(_ context.Context, read func() error) error {
	if m.faults.at("lost") == nil {
		return read()
	}
	kept := m.facts
	m.facts = nil
	err := cmp.Or(read(), store.ErrLost)
	m.facts = kept
	return err
}

func (m *memoryStore) State(context.Context, scope.Scope) (memory.State, error) {
	if err := m.faults.at("state"); err != nil {
		return memory.State{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	state := m.state
	state.Watermarks = maps.Clone(state.Watermarks)
	return state, nil
}

func (m *memoryStore) Apply(_ context.Context, e events.EffectCommitted, sequence uint64) error {
	if err := m.faults.at("before apply"); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case e.Incarnation < m.state.Incarnation:
		return store.ErrIncarnation
	case e.Revision <= m.state.Revision:
		return nil
	case e.Revision > m.state.Revision+1:
		return store.ErrBehind
	}
	m.applied++
	m.state.Revision, m.state.AuditSeq = e.Revision, sequence
	if e.Watermark != nil {
		m.state.Watermarks[e.Rule] = *e.Watermark
	}
	if e.Watermark != nil && e.Skipped != "" {
		m.skipped = append(m.skipped, *e.Range)
	} else if e.Range != nil && e.Skipped == "" {
		m.skipped = slices.DeleteFunc(m.skipped, func(r events.Range) bool { return r.From >= e.Range.From && r.To <= e.Range.To })
	}
	for _, f := range e.Facts {
		m.facts[f.ID] = f
	}
	for _, f := range e.Versions {
		m.versions[f.ID] = append(m.versions[f.ID], f)
	}
	for _, x := range e.Entities {
		m.entities[x.ID] = x
	}
	for _, h := range e.Holds {
		m.holds[h.ID] = h
	}
	for _, id := range e.Released {
		delete(m.holds, id)
	}
	m.outcomes = append(m.outcomes, e.Outcomes...)
	return m.faults.at("after apply")
}

func (m *memoryStore) Skipped(context.Context, scope.Scope, string) ([]events.Range, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.skipped), m.faults.at("skipped")
}

func (m *memoryStore) Touch(_ context.Context, _ scope.Scope, ids []string, at time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, id := range ids {
		m.touched = append(m.touched, id+" "+at.Format(time.TimeOnly))
	}
	return nil
}

func (m *memoryStore) Advance(context.Context, scope.Scope) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, mark := range m.state.Watermarks {
		m.state.LastOrdinal = max(m.state.LastOrdinal, mark)
	}
	return nil
}

func (m *memoryStore) FactsByID(_ context.Context, _ scope.Scope, ids []string) ([]store.Fact, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []store.Fact
	for _, id := range ids {
		if f, ok := m.facts[id]; ok {
			out = append(out, store.Fact{Fact: f, Strength: f.Confidence, LastAccessed: m.accessed[id]})
		}
	}
	return out, m.faults.at("facts")
}

func (m *memoryStore) Versions(_ context.Context, _ scope.Selector, id string) ([]store.Fact, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []store.Fact
	for _, f := range append(slices.Clone(m.versions[id]), m.facts[id]) {
		out = append(out, store.Fact{Fact: f})
	}
	return out, nil
}

func (m *memoryStore) Edges(context.Context, scope.Scope, []string) ([]events.Edge, error) {
	return nil, nil
}

func (m *memoryStore) EntitiesByID(_ context.Context, _ scope.Scope, ids []string) (out []events.Entity, _ error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, id := range ids {
		if e, ok := m.entities[id]; ok {
			out = append(out, e)
		}
	}
	return out, nil
}

func (m *memoryStore) Entities(_ context.Context, _ scope.Scope, names []string) ([]events.Entity, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []events.Entity
	for _, e := range m.entities {
		for _, name := range names {
			if _, ok := memory.Resolve([]events.Entity{e}, name, ""); ok {
				out = append(out, e)
				break
			}
		}
	}
	return out, nil
}

func (m *memoryStore) Holds(context.Context, scope.Scope) ([]events.Hold, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Collect(maps.Values(m.holds)), nil
}

func (m *memoryStore) Outcomes(_ context.Context, _, id string) ([]events.Outcome, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []events.Outcome
	for _, o := range m.outcomes {
		if o.CorrelationID == id {
			out = append(out, o)
		}
	}
	return out, nil
}

// memoryJournal is one scope's AUDIT subject. Sequences have gaps, as those of
// a stream shared by scopes do.
type memoryJournal struct {
	faults *faults
	// meanwhile runs once, before the next append.
	meanwhile func()

	mu      sync.Mutex
	effects []events.Event[events.EffectCommitted]
}

func (j *memoryJournal) Append(_ context.Context, meta events.Meta, e events.EffectCommitted, after uint64) (uint64, error) {
	if err := j.faults.at("before append"); err != nil {
		return 0, err
	}
	j.mu.Lock()
	meanwhile := j.meanwhile
	j.meanwhile = nil
	j.mu.Unlock()
	if meanwhile != nil {
		meanwhile()
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	last := j.last()
	if last != after || slices.ContainsFunc(j.effects, func(x events.Event[events.EffectCommitted]) bool { return x.ID == meta.ID }) {
		return 0, audit.ErrConflict
	}
	meta.Sequence = last + 3
	j.effects = append(j.effects, events.Event[events.EffectCommitted]{Meta: meta, Data: e})
	return meta.Sequence, j.faults.at("after append")
}

func (j *memoryJournal) last() uint64 {
	if len(j.effects) == 0 {
		return 0
	}
	return j.effects[len(j.effects)-1].Sequence
}

func (j *memoryJournal) ReadScope(_ context.Context, _ scope.Scope, after uint64) iter.Seq2[events.Event[events.EffectCommitted], error] {
	j.mu.Lock()
	effects := slices.Clone(j.effects)
	j.mu.Unlock()
	return func(yield func(events.Event[events.EffectCommitted], error) bool) {
		for _, e := range effects {
			if e.Sequence > after && !yield(e, nil) {
				return
			}
		}
	}
}

func (j *memoryJournal) Read(ctx context.Context, _ scope.Selector, after uint64) iter.Seq2[events.Event[events.EffectCommitted], error] {
	return j.ReadScope(ctx, alice, after)
}

func (j *memoryJournal) All(ctx context.Context, after uint64) iter.Seq2[events.Event[events.EffectCommitted], error] {
	return j.ReadScope(ctx, alice, after)
}

func (j *memoryJournal) Last(context.Context) (uint64, error) { return j.last(), nil }

// memoryLog counts each (revision, index) once.
type memoryLog struct {
	records map[[2]uint64]audit.Record
	err     error
}

func (l *memoryLog) Write(_ context.Context, effects []events.Event[events.EffectCommitted]) error {
	if l.err != nil {
		return l.err
	}
	for _, e := range effects {
		for _, r := range audit.Records(e) {
			l.records[[2]uint64{r.Revision, uint64(r.Index)}] = r
		}
	}
	return nil
}

// bench is a service over fakes.
type bench struct {
	*Service
	store   *memoryStore
	journal *memoryJournal
	log     *memoryLog
	cursors cursors
}

// audit is the whole of AUDIT.
func (b *bench) audit(t testing.TB) []*pipeline.Entry {
	t.Helper()
	return entries(t, b.journal.effects...)
}

func newBench(t testing.TB) *bench {
	t.Helper()
	return benchOver(t, newStore(), &memoryJournal{})
}

func benchOver(t testing.TB, m *memoryStore, j *memoryJournal) *bench {
	t.Helper()
	log, c := &memoryLog{records: map[[2]uint64]audit.Record{}}, cursors{}
	s, err := New(Config{}, Deps{Applier: m, Facts: m, Outcomes: m, Journal: j, Log: log, Cursors: c, LogCursors: c})
	if err != nil {
		t.Fatal(err)
	}
	return &bench{Service: s, store: m, journal: j, log: log, cursors: c}
}

// turn is a decided batch over one episode, which adds one fact. Its basis is
// that of a scope whose every effect is one of the memoryJournal's.
func turn(t testing.TB, n, basis uint64, factID string) events.Event[events.DeltasDecided] {
	t.Helper()
	episode := "e-" + factID
	prov := events.Provenance{
		ID: "d-" + factID, CandidateID: "c-" + factID, SourceEpisodeIDs: []string{episode}, PromotionTS: noon,
		RuleID: "r", Confidence: 1, Reason: events.ReasonNew, DecidedBy: "rules@v1",
	}
	add, err := events.NewAdd(prov, events.FactPayload{Fact: &events.Fact{
		ID: factID, Kind: events.FactSemantic, Text: factID, EventTime: noon, ValidFrom: noon, SourceEpisodeIDs: []string{episode},
	}})
	if err != nil {
		t.Fatal(err)
	}
	in := events.Event[events.DeltasDecided]{Data: events.DeltasDecided{
		Batch: events.Batch{
			Header: events.Header{Scope: alice}, Rule: memory.RuleTurn,
			Range: events.Range{From: n - 1, To: n}, Cause: events.CauseEvery,
		},
		Basis: basis, BasisSequence: 3 * basis, Footprint: &events.Footprint{Hashes: []string{memory.HashText(factID)}},
		Deltas: events.Deltas{add}, Candidates: []events.Candidate{{ID: prov.CandidateID, Text: factID, EventTime: noon}},
		Episodes: []events.EpisodeRef{{ID: episode, Ordinal: n, CorrelationID: "req-" + factID}},
	}}
	in.Meta = events.Meta{ID: "m-" + factID, Time: noon, Delivery: 1, Scope: alice, Kind: events.KindDeltasDecided}
	return in
}

func remove(t testing.TB, factID string, rev uint64) events.Event[events.DeltasDecided] {
	t.Helper()
	in := turn(t, 1, 0, factID)
	prov := in.Data.Deltas[0].Provenance()
	prov.ID, prov.CandidateID, prov.Reason, prov.RequestID = "x-"+factID, "", events.ReasonRequested, "r-1"
	del, err := events.NewDelete(prov, []string{factID})
	if err != nil {
		t.Fatal(err)
	}
	in.Data = events.DeltasDecided{
		Batch:   events.Batch{Header: events.Header{Scope: alice}},
		Command: &events.CommandRef{RequestID: "r-1", Op: events.OpDelete, IfMatch: map[string]uint64{factID: rev}},
		Deltas:  events.Deltas{del},
	}
	in.ID, in.CorrelationID = "m-delete", "r-1"
	return in
}

func announced(out []events.Payload) []string {
	var ids []string
	for _, p := range out {
		if o, ok := p.(events.OutcomeAnnounced); ok {
			ids = append(ids, o.Outcome.CorrelationID)
		}
	}
	return ids
}
