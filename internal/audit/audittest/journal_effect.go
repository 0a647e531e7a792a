package audittest

import (
	"context"
	"iter"
	"strconv"
	"strings"
	"testing"
	"time"

	"palimpsest/internal/audit"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// JournalScopes are fact scopes whose identifiers look for a way out of their
// subject; no two are equal, however they are encoded.
func JournalScopes() []scope.Scope {
	long := strings.Repeat("É", scope.MaxIdentifier/2)
	return []scope.Scope{
		{Project: "default", User: "alice"},
		{Project: "default", User: "Alice"},
		{Project: "default", User: "aliceX"},
		{Project: "default", User: "alice", Agent: "bot"},
		{Project: "default", Agent: "alice"},
		{Project: "default", Session: "alice"},
		{Project: "default", Agent: "bot", Session: "alice"},
		{Project: "other", User: "alice"},
		{Project: "default", User: "*"},
		{Project: "default", User: ">"},
		{Project: "default", User: "_"},
		{Project: "default", User: "."},
		{Project: "default", User: "a.b"},
		{Project: "default", User: "a", Agent: "b"},
		{Project: "default", User: "%2A"},
		{Project: "default", User: "a/../b"},
		{Project: "*", User: "alice"},
		{Project: ">", User: "alice"},
		{Project: "default", User: "caf\u00e9"},
		{Project: "default", User: "cafe\u0301"},
		{Project: "default", User: "👩‍💻 ' OR 1=1 --"},
		{Project: long, User: long, Agent: long},
		{Project: long, Agent: long, Session: long},
	}
}

// JournalEffect makes an effect that is valid and differs from any of another
// scope, revision or tag.
func JournalEffect(s scope.Scope, revision uint64, tag string) (events.Meta, events.EffectCommitted) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC).Add(time.Duration(revision) * time.Second)
	id := events.HashID("effect", s.String(), strconv.FormatUint(revision, 10), tag)
	meta := events.Meta{
		ID: id, Source: "consolidator", Kind: events.KindEffectCommitted, Scope: s, Time: at,
		CorrelationID: "correlation-" + tag, CausationID: "cause-" + tag,
	}
	watermark := revision * 10
	return meta, events.EffectCommitted{
		Header:      events.Header{Scope: s},
		Revision:    revision,
		Rule:        "turn",
		Range:       &events.Range{From: watermark - 10, To: watermark},
		Cause:       events.CauseEvery,
		Watermark:   &watermark,
		CommittedAt: at,
		Released:    []string{tag},
		Tally:       events.Tally{Episodes: 10},
	}
}

func journalDeadline(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// journalFill appends revisions 1 to n with the tag "a" and returns their sequences.
func journalFill(t *testing.T, j audit.Appender, s scope.Scope, n uint64) []uint64 {
	t.Helper()
	var all []uint64
	var after uint64
	for revision := uint64(1); revision <= n; revision++ {
		after = journalAppend(t, j, s, revision, "a", after)
		all = append(all, after)
	}
	return all
}

func journalAppend(t *testing.T, j audit.Appender, s scope.Scope, revision uint64, tag string, after uint64) uint64 {
	t.Helper()
	meta, effect := JournalEffect(s, revision, tag)
	sequence, err := j.Append(journalDeadline(t), meta, effect, after)
	if err != nil {
		t.Fatalf("append revision %d of %s: %v", revision, s, err)
	}
	if sequence <= after {
		t.Fatalf("sequence %d is not behind %d", sequence, after)
	}
	return sequence
}

func journalCollect(t *testing.T, seq iter.Seq2[events.Event[events.EffectCommitted], error]) []events.Event[events.EffectCommitted] {
	t.Helper()
	var all []events.Event[events.EffectCommitted]
	for e, err := range seq {
		if err != nil {
			t.Fatalf("read: %v", err)
		}
		all = append(all, e)
	}
	return all
}

func journalSequences(effects []events.Event[events.EffectCommitted]) []uint64 {
	var all []uint64
	for _, e := range effects {
		all = append(all, e.Sequence)
	}
	return all
}
