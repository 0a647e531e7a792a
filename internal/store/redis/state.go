package redis

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"

	"palimpsest/internal/memory"
	"palimpsest/internal/store"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// The prefixes of a state's fields that are kept by rule.
const (
	markField  = "w:" // watermark
	tallyField = "l:" // candidates, decided, held, dropped
	skipField  = "b:" // buried ranges
	claimField = "c:" // the tick under way
)

// Fields of a state that tell a wake-up what it need not read. The scripts that
// store episodes keep them; the state of a scope from before them has none.
const (
	fieldOpenSessions = "so" // how many sessions are open and live
	fieldLastEnd      = "se" // the highest last ordinal of a session end
	// fieldLastRequest is the highest ordinal of a request and, behind a colon, the
	// ordinal up to which that is known. Where the latter is not the scope's last
	// ordinal, a version that knows no such field stored an episode since.
	fieldLastRequest = "rq"
	// fieldHeld is whether an effect ever held a candidate and, behind a colon, the
	// revision up to which that is known. Where the latter is not the scope's revision, a
	// version that knows no such field applied an effect since.
	fieldHeld = "hd"
)

// incarnation is that of a scope, whose row has none before its first effect.
func (s *Store) incarnation(fact scope.Scope, f fields) uint64 {
	if f["inc"] == "" {
		return s.cfg.Born(fact.Project, fact.User)
	}
	return f.uint("inc")
}

// parseState reads a scope's row.
func (s *Store) parseState(fact scope.Scope, f fields) memory.State {
	st := memory.State{
		Scope: fact, Incarnation: s.incarnation(fact, f), LastOrdinal: f.uint("last"), Revision: f.uint("rev"), AuditSeq: f.uint("aseq"),
		Watermarks: map[string]uint64{}, NoHolds: neverHeld(f),
	}
	for name := range f {
		if rule, ok := strings.CutPrefix(name, markField); ok {
			st.Watermarks[rule] = f.uint(name)
		}
	}
	return st
}

// State implements [store.StateReader].
func (s *Store) State(ctx context.Context, fact scope.Scope) (memory.State, error) {
	look, err := s.Look(ctx, fact)
	return look.State, err
}

// ReadWhole implements [store.WholeReader].
func (s *Store) ReadWhole(ctx context.Context, read func() error) error {
	t := s.tenure()
	if err := read(); err != nil {
		return err
	}
	err := s.unbroken(ctx, t)
	if errors.Is(err, errMoved) { // it was put back already
		return fmt.Errorf("redis: %w", store.ErrLost)
	}
	return err
}

// Look implements [store.Schedule]: all of it is in the scope's row.
func (s *Store) Look(ctx context.Context, fact scope.Scope) (store.Standing, error) {
	if err := fact.Validate(); err != nil {
		return store.Standing{State: memory.State{Scope: fact}}, err
	}
	p := s.place(fact)
	reply, err := s.call(ctx, "HGETALL", p.state())
	f := hashOf(reply)
	look := s.parseStanding(fact, f)
	if err == nil {
		p.tenure.read.Put(p.tag, f, maxRead) // the next caller that takes it owns it
	}
	return look, err
}

func (s *Store) parseStanding(fact scope.Scope, f fields) store.Standing {
	look := store.Standing{State: s.parseState(fact, f), Claims: map[string]store.Claim{}, Ended: lastEnd(f), Open: math.MaxInt, Requested: lastRequest(f)}
	for name, claim := range f {
		if rule, ok := strings.CutPrefix(name, claimField); ok && claim != "" {
			look.Claims[rule] = parseClaim(claim)
		}
	}
	if open, err := strconv.Atoi(f[fieldOpenSessions]); err == nil || f["ed"] == "" {
		look.Open = open
	}
	return look
}

// lastEnd is the highest last ordinal of a session end, or more.
func lastEnd(f fields) uint64 {
	last, err := strconv.ParseUint(f[fieldLastEnd], 10, 64)
	if err != nil && f["ed"] != "" {
		return math.MaxUint64
	}
	return last
}

// lastRequest is at least the highest ordinal of a request, nil where the state does
// not tell.
func lastRequest(f fields) *uint64 {
	at, upTo, _ := strings.Cut(f[fieldLastRequest], ":")
	last, err := strconv.ParseUint(at, 10, 64)
	if err != nil || upTo != f["last"] {
		return nil
	}
	return &last
}

// neverHeld reports whether it is known that no effect of a scope held a candidate.
func neverHeld(f fields) bool { return f.uint("rev") == 0 || f[fieldHeld] == "0:"+f["rev"] }

// states reads the rows of scopes, in their order.
func (s *Store) states(ctx context.Context, facts []scope.Scope) ([]fields, error) {
	commands := make([][]any, len(facts))
	for i, fact := range facts {
		commands[i] = []any{"HGETALL", s.place(fact).state()}
	}
	replies, err := s.pipe(ctx, commands)
	list := make([]fields, len(replies))
	for i, r := range replies {
		list[i] = hashOf(r)
	}
	return list, err
}

func formatClaim(c store.Claim) string {
	if c == (store.Claim{}) {
		return ""
	}
	return fmt.Sprintf("%d:%d:%d:%d", c.Range.From, c.Range.To, micros(c.At), c.Attempt)
}

func parseClaim(text string) (c store.Claim) {
	var at int64
	if n, _ := fmt.Sscanf(text, "%d:%d:%d:%d", &c.Range.From, &c.Range.To, &at, &c.Attempt); n != 4 {
		return store.Claim{}
	}
	c.At = fromMicros(at)
	return c
}

func parseSkips(text string) (list []events.Range) {
	if text != "" {
		_ = json.Unmarshal([]byte(text), &list) // ours
	}
	return list
}

// turns lets one writer of a scope at a time read, decide and commit. Other
// processes are kept out by the guards; this only saves attempts.
type turns struct{ stripes [64]sync.Mutex }

func (t *turns) take(p place) (leave func()) {
	var n byte
	for i := range p.tag[:4] {
		n = n*31 + p.tag[i]
	}
	m := &t.stripes[int(n)%len(t.stripes)]
	m.Lock()
	return m.Unlock
}
