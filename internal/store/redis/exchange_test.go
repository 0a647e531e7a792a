package redis

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"testing"

	goredis "github.com/redis/go-redis/v9"

	"palimpsest/internal/memory"
	"palimpsest/internal/store"
	"palimpsest/pkg/scope"
)

// fails has the first attempts at a search come to nothing.
type fails struct {
	attempts atomic.Int32
	first    int32
	how      func(cmds []goredis.Cmder)
}

func (f *fails) DialHook(next goredis.DialHook) goredis.DialHook { return next }

func (f *fails) ProcessHook(next goredis.ProcessHook) goredis.ProcessHook {
	return func(ctx context.Context, cmd goredis.Cmder) error {
		if !isSearch(cmd.Args()) || f.attempts.Add(1) > f.first {
			return next(ctx, cmd)
		}
		f.how([]goredis.Cmder{cmd})
		return cmd.Err()
	}
}

func (f *fails) ProcessPipelineHook(next goredis.ProcessPipelineHook) goredis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []goredis.Cmder) error {
		if !isSearch(cmds[0].Args()) || f.attempts.Add(1) > f.first {
			return next(ctx, cmds)
		}
		f.how(cmds)
		return cmds[0].Err()
	}
}

func say(cmd goredis.Cmder, reply string) {
	if c, ok := cmd.(searching); ok {
		c.reply.WriteString(reply)
	}
}

// TestSearchIsRepeated: the driver repeats no command whose reply it hands over unread,
// and does not see what the server says in it.
func TestSearchIsRepeated(t *testing.T) {
	t.Parallel()
	s := openNew(t, testConfig(t))
	if err := s.Apply(t.Context(), benchEffect("ana", 1), 1); err != nil {
		t.Fatal(err)
	}
	hook := &fails{first: 0}
	addHook(s, hook)
	searches := map[string]func() (int, error){
		"alone": func() (int, error) {
			list, err := s.Facts(t.Context(), selAna(), store.FactQuery{Limit: 3})
			return len(list), err
		},
		"with others": func() (int, error) {
			sel := scope.Exactly(ana)
			hits, err := s.SearchText(t.Context(), sel, "note", store.SearchQuery{Target: store.Facts, Limit: 3})
			return len(hits), err
		},
	}
	for name, how := range map[string]func(cmds []goredis.Cmder){
		"no answer": func(cmds []goredis.Cmder) {
			for _, cmd := range cmds {
				cmd.SetErr(io.EOF)
			}
		},
		"cut off behind it": func(cmds []goredis.Cmder) {
			say(cmds[0], repliedSearch())
			cmds[len(cmds)-1].SetErr(io.ErrUnexpectedEOF)
		},
		"loading": func(cmds []goredis.Cmder) { say(cmds[0], "-LOADING Redis is loading the dataset in memory\r\n") },
	} {
		hook.how, hook.first = how, maxRepeats
		for with, search := range searches {
			hook.attempts.Store(0)
			if n, err := search(); err != nil || n != 3 {
				t.Errorf("%s, %s: %d rows, %v", name, with, n, err)
			}
		}
	}
	hook.first = maxRepeats + 1
	for with, search := range searches {
		hook.attempts.Store(0)
		if _, err := search(); !errors.Is(err, store.ErrAway) && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%s, again and again: %v", with, err)
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
