package pipeline

import (
	"context"
	"errors"
	"slices"
	"testing"

	"palimpsest/pkg/events"
)

func TestPastIsWhatWasHandedOut(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.standard(pinned)
	past := NewPast(b.js, "episodes")
	read := func(after uint64) (ids []string) {
		t.Helper()
		err := past.Read(b.context(), after, func(in events.Raw, settled bool) error {
			if !settled {
				t.Error("what was acknowledged is not settled")
			}
			meta, _, err := events.Decode(in)
			ids = append(ids, meta.ID)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return ids
	}
	if ids := read(0); len(ids) != 0 {
		t.Errorf("before anything was said: %v", ids)
	}
	_, stop := b.start(quickConfig(), onEpisode(func(context.Context, episode) ([]events.Payload, error) { return nil, nil }))
	said := []string{"one", "two", "three"}
	for _, id := range said {
		b.say(user("ann"), id)
	}
	b.settled("EPISODES", "episodes")
	stop()
	b.say(user("ann"), "not yet")
	if ids := read(0); !slices.Equal(ids, said) {
		t.Errorf("read %v, want %v", ids, said)
	}
	if ids := read(2); !slices.Equal(ids, said[2:]) {
		t.Errorf("behind 2: %v", ids)
	}
	if ids := read(3); len(ids) != 0 {
		t.Errorf("behind 3: %v", ids)
	}
	var newest []string
	err := past.Newest(b.context(), func(in events.Raw) (bool, error) {
		meta, _, err := events.Decode(in)
		newest = append(newest, meta.ID)
		return meta.ID == "two", err
	})
	if err != nil || !slices.Equal(newest, []string{"three", "two"}) {
		t.Errorf("newest first until enough: %v, %v", newest, err)
	}
	if begin, err := past.Begin(b.context()); err != nil || begin != 1 {
		t.Errorf("begins at %d, %v", begin, err)
	}
	enough := errors.New("enough")
	if err := past.Read(b.context(), 0, func(events.Raw, bool) error { return enough }); !errors.Is(err, enough) {
		t.Errorf("err = %v, want that of yield", err)
	}
}
