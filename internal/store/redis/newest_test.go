package redis

import (
	"testing"

	"palimpsest/internal/memory"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// TestNewestNamesTheEndOfEpisodes, whatever the scope of the newest episode is.
func TestNewestNamesTheEndOfEpisodes(t *testing.T) {
	t.Parallel()
	s := openNew(t, testConfig(t))
	want := func(sequence uint64) {
		t.Helper()
		if episode, effect, err := s.Newest(t.Context()); episode != sequence || effect != 0 || err != nil {
			t.Errorf("%d, %d, %v; want %d", episode, effect, err, sequence)
		}
	}
	want(0)
	for _, e := range []struct {
		user string
		seq  uint64
	}{{"ana", 7}, {"bob", 41}, {"ana", 12}, {"ana", 0}} {
		_, err := s.PutEpisode(t.Context(), memory.Episode{
			ID: e.user + string(rune('a'+e.seq)), Source: "app", Scope: scope.Scope{Project: "p", User: e.user}, Role: events.RoleUser,
			Content: "hello", Timestamp: said0, ArrivedAt: said0, Seq: e.seq, Mode: events.ModePersistent,
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	want(41)
}
