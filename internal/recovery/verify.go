package recovery

import (
	"context"
	"errors"
	"fmt"
	"time"

	"palimpsest/internal/audit"
	"palimpsest/internal/memory"
	"palimpsest/internal/pipeline"
	"palimpsest/internal/poll"
	"palimpsest/internal/store"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
	"palimpsest/services/ingest"
)

// Sources are what a verification compares. Palimpsest may run meanwhile.
type Sources struct {
	Store   Earlier
	Journal Journal
	Log     audit.Log
	// Episodes and Effects are EPISODES and AUDIT.
	Episodes, Effects *pipeline.Replay
	Ingest            ingest.Config
	// Erased is as in [ingest.Deps].
	Erased func(project, user string, sequence uint64, arrived time.Time) bool
	// Checks are those of the files that store and log are, by name.
	Checks map[string]func(ctx context.Context, step func(done, all int)) error
	// Expires reports whether the audit log drops the row of a delta once it is old. It
	// keeps the effects.
	Expires func(events.Delta) bool
	// Born is as in [Inputs]; nil where no user was erased. Effects of an older incarnation
	// were erased: an AUDIT that was restored has them, and nothing else does.
	Born func(project, user string) uint64
	// Patience is how long what a running Palimpsest has not written yet is waited
	// for; 0 means not at all.
	Patience time.Duration
	// Part is as in [Inputs].
	Part func(name string, total uint64) (step func(n int), end func())
}

// Said calls yield with every episode of EPISODES that the store should have, in
// stream order, until yield returns an error.
func (s Sources) Said(ctx context.Context, yield func(memory.Episode) error) error {
	return ingest.Reader(s.Ingest, s.Erased).Episodes(ctx, s.Episodes, yield)
}

// Difference is one way in which store, streams and audit log differ.
type Difference struct {
	What  string `json:"what"`
	Count int    `json:"count"`
	// First names one of them.
	First string `json:"first"`
}

func (d Difference) String() string { return fmt.Sprintf("%d %s, first %s", d.Count, d.What, d.First) }

// Verified is what a verification found.
type Verified struct {
	Episodes int `json:"episodes"` // of the store
	// OnlyStore are those of them that a rebuild found in no stream and kept,
	// Dropped those that EPISODES has dropped since.
	OnlyStore   int          `json:"only_store"`
	Dropped     int          `json:"dropped"`
	Scopes      int          `json:"scopes"`
	Effects     int          `json:"effects"` // of AUDIT
	Rows        int          `json:"rows"`    // of the audit log
	Differences []Difference `json:"differences"`
}

// OK reports whether nothing differs.
func (v Verified) OK() bool { return len(v.Differences) == 0 }

// verification is one run.
type verification struct {
	Sources
	out   Verified
	index map[string]int // of differences, by what

	scopes map[scope.Scope]memory.State
	stored map[uint64]mark // episodes of the store, by sequence in EPISODES
	absent []memory.Episode
}

// Verify compares store, streams and audit log with each other. A damaged file is a
// difference.
func Verify(ctx context.Context, from Sources) (Verified, error) {
	v := &verification{
		Sources: from, index: map[string]int{}, scopes: map[scope.Scope]memory.State{}, stored: map[uint64]mark{},
	}
	v.out.Differences = []Difference{}
	for _, step := range []func(context.Context) error{v.files, v.store, v.episodes, v.effects} {
		err := step(ctx)
		if errors.Is(err, store.ErrDamaged) || errors.Is(err, audit.ErrDamaged) {
			v.differ("files cannot be read", err.Error())
			continue
		}
		if err != nil {
			return v.out, fmt.Errorf("verify: %w", err)
		}
	}
	return v.out, nil
}

// differ counts a difference.
func (v *verification) differ(what, which string) {
	i, known := v.index[what]
	if !known {
		i = len(v.out.Differences)
		v.index[what] = i
		v.out.Differences = append(v.out.Differences, Difference{What: what, First: which})
	}
	v.out.Differences[i].Count++
}

// files checks the files that store and log are.
func (v *verification) files(ctx context.Context) error {
	for name, check := range v.Checks {
		step, end := v.Part(name, 0)
		at := 0
		err := check(ctx, func(done, _ int) { step(done - at); at = done })
		end()
		if err != nil {
			return err
		}
	}
	return nil
}

// recheckEvery is the pause between two looks at writes that are still to come.
const recheckEvery = 100 * time.Millisecond

// await calls look until it reports that nothing is left, or patience is over.
func (v *verification) await(ctx context.Context, look func() (left bool, err error)) error {
	began := time.Now()
	return poll.Until(ctx, recheckEvery, func() (bool, error) {
		left, err := look()
		return !left || time.Since(began) >= v.Patience, err
	})
}
