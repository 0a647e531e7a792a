package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"palimpsest/internal/memory"
	"palimpsest/internal/store"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// epoch is when everything in the suite begins.
var epoch = time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)

// same compares stored values with those read: nil and an empty list are equal, and
// instants are equal in any location.
var same = cmp.Options{cmpopts.EquateEmpty()}

func user(name, session string) scope.Scope {
	return scope.Scope{Project: "p", User: name, Session: session}
}

// episode is what was said at minute n.
func episode(s scope.Scope, id string, n int, content string) memory.Episode {
	at := epoch.Add(time.Duration(n) * time.Minute)
	return memory.Episode{
		ID: id, Source: "app", Scope: s, Role: events.RoleUser, Content: content,
		Timestamp: at, ArrivedAt: at, Mode: events.ModePersistent,
	}
}

func put(t *testing.T, s store.Store, e memory.Episode) store.Put {
	t.Helper()
	p, err := s.PutEpisode(t.Context(), e)
	if err != nil {
		t.Fatalf("PutEpisode(%s): %v", e.ID, err)
	}
	return p
}

// say stores n episodes of a scope, one a minute, and returns them.
func say(t *testing.T, s store.Store, sc scope.Scope, n int) []memory.Episode {
	t.Helper()
	var list []memory.Episode
	for i := range n {
		list = append(list, put(t, s, episode(sc, fmt.Sprintf("e%d", i+1), i, fmt.Sprintf("word%d said here", i+1))).Episode)
	}
	return list
}

// fact is what became known at minute n.
func fact(id string, n int, text string) events.Fact {
	at := epoch.Add(time.Duration(n) * time.Minute)
	return events.Fact{
		ID: id, Revision: 1, Kind: events.FactSemantic, Category: "preference", Subject: "Ana", Predicate: "LIKES",
		Object: text, Text: text, Hash: memory.HashText(text), Confidence: 0.8, DecayRate: 0.1,
		EventTime: at, CreatedAt: at, UpdatedAt: at, ValidFrom: at,
		SourceType: events.SourceConversation, SourceRole: events.RoleUser, SourceEpisodeIDs: []string{"e1"}, RuleID: "r",
	}
}

// next is the version after f with another text.
func next(f events.Fact, text string) events.Fact {
	f.Revision++
	f.Text, f.Object, f.Hash = text, text, memory.HashText(text)
	f.UpdatedAt = f.UpdatedAt.Add(time.Hour)
	return f
}

// effect is commit number revision of a fact scope.
func effect(sc scope.Scope, revision uint64, change func(*events.EffectCommitted)) events.EffectCommitted {
	e := events.EffectCommitted{
		Header: events.Header{Scope: sc}, Revision: revision, Rule: "turn",
		CommittedAt: time.Now().UTC(),
	}
	if change != nil {
		change(&e)
	}
	return e
}

func withFacts(facts ...events.Fact) func(*events.EffectCommitted) {
	return func(e *events.EffectCommitted) { e.Facts = facts }
}

// covering is an effect of a tick over (from, to].
func covering(rule string, from, to uint64) func(*events.EffectCommitted) {
	return func(e *events.EffectCommitted) {
		e.Rule, e.Range, e.Watermark = rule, &events.Range{From: from, To: to}, &to
		e.Tally = events.Tally{Episodes: int(to - from), Candidates: 3, Decided: 1, Held: 1, Dropped: 1}
	}
}

func apply(t *testing.T, s store.Store, e events.EffectCommitted) {
	t.Helper()
	if err := s.Apply(t.Context(), e, 100+e.Revision); err != nil {
		t.Fatalf("Apply(revision %d): %v", e.Revision, err)
	}
}

// must returns the first value, or ends the test.
func must[T any](v T, err error) func(t *testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// unheld leaves out what a store may know.
var unheld = cmpopts.IgnoreFields(memory.State{}, "NoHolds")

func equal(t *testing.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got, same, unheld); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func pointer(s string) *string { return &s }

func episodeIDs(list []memory.Episode) []string {
	var ids []string
	for _, e := range list {
		ids = append(ids, e.ID)
	}
	return ids
}

func factIDs(list []store.Fact) []string {
	var ids []string
	for _, f := range list {
		ids = append(ids, f.ID)
	}
	return ids
}

func hitIDs(hits []store.Hit) []string {
	var ids []string
	for _, h := range hits {
		if h.Fact != nil {
			ids = append(ids, h.Fact.ID)
		} else {
			ids = append(ids, h.Episode.ID)
		}
	}
	return ids
}

func pending(t *testing.T, s store.Store, rule string) []string {
	t.Helper()
	var keys []string
	err := s.Pending(t.Context(), rule, func(st store.Pending) bool {
		keys = append(keys, st.Scope.String())
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// Fading makes n facts of the user, each n/due-th of which is due to be pruned at once.
func Fading(n, due int, at time.Time) []events.Fact {
	all := make([]events.Fact, n)
	for i := range all {
		text := fmt.Sprintf("fact %06d of many", i)
		all[i] = events.Fact{
			ID: events.HashID("f", text), Revision: 1, Kind: events.FactSemantic, Subject: "user", Predicate: "likes", Object: text, Text: text,
			Hash: memory.HashText(text), Confidence: 0.9, DecayRate: 0.1, EventTime: at, CreatedAt: at, UpdatedAt: at, ValidFrom: at, SourceEpisodeIDs: []string{"e"},
		}
		if i%(n/due) == 0 {
			all[i].Confidence = 0.01
		}
	}
	return all
}
