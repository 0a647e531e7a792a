package redis

import (
	"strconv"
	"testing"

	"palimpsest/internal/memory"
	"palimpsest/pkg/events"
)

// A scope tells up to where it has requests, unless a version that does not keep count
// stored an episode.
func TestLastRequest(t *testing.T) {
	t.Parallel()
	s := openNew(t, testConfig(t))
	put := func(n int, request bool) {
		t.Helper()
		e := memory.Episode{
			ID: strconv.Itoa(n), Source: "app", Scope: ana, Role: events.RoleUser, Content: "hello", Timestamp: said0, ArrivedAt: said0, Request: request,
		}
		if _, err := s.PutEpisode(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	check := func(what string, want int) { // -1 for unknown
		t.Helper()
		look, err := s.Look(t.Context(), ana.Fact())
		got := -1
		if look.Requested != nil {
			got = int(*look.Requested)
		}
		if err != nil || got != want {
			t.Errorf("%s: %d, %v; want %d", what, got, err, want)
		}
	}
	check("nothing stored", -1)
	put(1, false)
	check("no request", 0)
	put(2, true)
	put(3, false)
	check("one", 2)
	if _, err := s.call(t.Context(), "HSET", s.place(ana.Fact()).state(), "last", "4"); err != nil {
		t.Fatal(err)
	}
	check("a version before stored an episode", -1)
	put(5, false)
	check("and this one another", -1)
	put(6, true)
	check("a request after that", 6)
	put(7, false)
	check("no request after that", 6)
}
