package redis

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"sync/atomic"
	"testing"

	goredis "github.com/redis/go-redis/v9"

	"palimpsest/internal/memory"
	"palimpsest/internal/store"
	"palimpsest/pkg/scope"
)

// cutOff has the first commands sent get no answer.
type cutOff struct{ times atomic.Int32 }

func (c *cutOff) DialHook(next goredis.DialHook) goredis.DialHook { return next }

func (c *cutOff) ProcessHook(next goredis.ProcessHook) goredis.ProcessHook {
	return func(ctx context.Context, cmd goredis.Cmder) error {
		if isSearch(cmd.Args()) && c.times.Add(1) == 1 {
			cmd.SetErr(io.EOF)
			return io.EOF
		}
		return next(ctx, cmd)
	}
}

func (c *cutOff) ProcessPipelineHook(next goredis.ProcessPipelineHook) goredis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []goredis.Cmder) error {
		if isSearch(cmds[0].Args()) && c.times.Add(1) == 1 {
			for _, cmd := range cmds {
				cmd.SetErr(io.EOF)
			}
			return io.EOF
		}
		return next(ctx, cmds)
	}
}

// TestSearchIsRepeatedWhereAConnectionBroke: the driver repeats no command whose
// reply it hands over unread.
func TestSearchIsRepeatedWhereAConnectionBroke(t *testing.T) {
	t.Parallel()
	s := openNew(t, testConfig(t))
	if err := s.Apply(t.Context(), benchEffect("ana", 1), 1); err != nil {
		t.Fatal(err)
	}
	hook := new(cutOff)
	s.client.AddHook(hook)
	q := store.SearchQuery{Target: store.Facts, Limit: 3}
	for name, search := range map[string]func() (int, error){
		"alone": func() (int, error) {
			list, err := s.Facts(t.Context(), selAna(), store.FactQuery{Limit: 3})
			return len(list), err
		},
		"with others": func() (int, error) {
			hits, err := s.SearchText(t.Context(), selAna(), "note", q)
			return len(hits), err
		},
	} {
		hook.times.Store(0)
		if n, err := search(); err != nil || n != 3 {
			t.Errorf("%s: %d rows, %v", name, n, err)
		}
		if hook.times.Load() < 2 {
			t.Errorf("%s: nothing was cut off", name)
		}
	}
}

// TestHitsOutliveTheirAnswer: what a search returns is no part of the memory that the
// next ones read their replies into.
func TestHitsOutliveTheirAnswer(t *testing.T) {
	t.Parallel()
	s := openNew(t, testConfig(t))
	for revision := range uint64(2) {
		if err := s.Apply(t.Context(), benchEffect("ana", revision+1), revision+1); err != nil {
			t.Fatal(err)
		}
	}
	full := ana
	full.Session = "s"
	for i := range 20 {
		_, err := s.PutEpisode(t.Context(), memory.Episode{
			ID: fmt.Sprint(i), Scope: full, Content: fmt.Sprintf("note %d", i), Timestamp: said0, Metadata: map[string]any{"n": fmt.Sprint(i)},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	sel := scope.Under(scope.Scope{Project: ana.Project, User: "ana"})
	search := func(target store.Target, text string) []store.Hit {
		hits, err := s.SearchText(t.Context(), sel, text, store.SearchQuery{Target: target, Limit: 10})
		if err != nil || len(hits) == 0 {
			t.Fatalf("%d hits, %v", len(hits), err)
		}
		return hits
	}
	for _, target := range []store.Target{store.Facts, store.Episodes} {
		hits := search(target, "note")
		before, err := json.Marshal(hits)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 20 {
			search(store.Facts, fmt.Sprintf("drawer%d note", i%7))
			search(store.Episodes, fmt.Sprintf("%d note", i))
		}
		if after, err := json.Marshal(hits); err != nil || !bytes.Equal(before, after) {
			t.Errorf("target %d: %v\n%s\nwere\n%s", target, err, after, before)
		}
	}
}
