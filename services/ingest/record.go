package ingest

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"palimpsest/internal/memory"
	"palimpsest/internal/pipeline"
	"palimpsest/internal/store"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// item is a message that may be stored: an episode, or the end of a session.
type item struct {
	entry   *pipeline.Entry
	episode memory.Episode
	end     *events.Event[events.SessionEnded]
}

// record stores what a partition brought, in its order, and announces each fact
// scope once. An episode that is known is announced all the same: the first
// announcement may have been lost with the process that was to make it.
func (s *Service) record(ctx context.Context, in []*pipeline.Entry) error {
	s.store(ctx, in)
	return nil
}

// store does so, and returns how many episodes were not known before.
func (s *Service) store(ctx context.Context, in []*pipeline.Entry) (added int) {
	var last announcements
	for run := range runs(s.read(in)) {
		if run[0].end != nil {
			s.endSession(ctx, run[0], &last)
		} else {
			s.put(ctx, run, &last)
		}
	}
	last.announce(s)
	s.stored.Add(1)
	s.Wake()
	return last.added
}

// read decodes and validates. A message that is refused has its error.
func (s *Service) read(in []*pipeline.Entry) []item {
	out := make([]item, 0, len(in))
	for _, e := range in {
		it, err := s.itemOf(e)
		if errors.Is(err, errErased) {
			continue
		}
		if err != nil {
			e.Err = err
			continue
		}
		out = append(out, it)
	}
	return out
}

// errErased: a copy of the stream that is older than an erasure has the message still.
var errErased = errors.New("ingest: the message was erased")

func (s *Service) itemOf(e *pipeline.Entry) (item, error) {
	if s.deps.Erased != nil && s.deps.Erased(e.Meta.Scope.Project, e.Meta.Scope.User, e.Meta.Sequence, e.Meta.Arrived) {
		return item{}, errErased
	}
	switch e.Meta.Kind {
	case events.KindEpisodeRecorded:
		in, err := pipeline.DecodeEntry[events.EpisodeRecorded](e)
		if err != nil {
			return item{}, err
		}
		episode, err := s.cfg.validate(in)
		return item{entry: e, episode: episode}, err
	case events.KindSessionEnded:
		in, err := pipeline.DecodeEntry[events.SessionEnded](e)
		return item{entry: e, end: &in}, err
	}
	return item{}, &events.FieldError{Field: "type", Code: events.CodeUnknownKind, Reason: fmt.Sprintf("%s is not handled here", e.Meta.Kind)}
}

// runs cuts items into episodes that can be stored together and single ends of
// sessions, which count on all before them.
func runs(items []item) func(yield func([]item) bool) {
	return func(yield func([]item) bool) {
		for len(items) > 0 {
			n := slices.IndexFunc(items, func(it item) bool { return it.end != nil })
			switch n {
			case -1:
				n = len(items)
			case 0:
				n = 1
			}
			if !yield(items[:n]) {
				return
			}
			items = items[n:]
		}
	}
}

// scopesAtOnce bounds the writes under way after one of all failed.
const scopesAtOnce = 8

// put stores episodes in one step. Where that fails, each fact scope is tried by
// itself: the server of one may be away while those of others answer.
func (s *Service) put(ctx context.Context, run []item, last *announcements) {
	run = last.open(run)
	if len(run) == 0 {
		return
	}
	puts, err := s.putAll(ctx, run)
	if err == nil {
		last.stored(run, puts)
		return
	}
	byScope := map[scope.Scope][]item{}
	for _, it := range run {
		fact := it.episode.Scope.Fact()
		byScope[fact] = append(byScope[fact], it)
	}
	if len(byScope) == 1 {
		last.failed(run, err)
		return
	}
	var g errgroup.Group
	g.SetLimit(scopesAtOnce)
	for _, mine := range byScope {
		g.Go(func() error {
			puts, err := s.putAll(ctx, mine)
			last.mu.Lock()
			defer last.mu.Unlock()
			if err != nil {
				last.failed(mine, err)
			} else {
				last.stored(mine, puts)
			}
			return nil
		})
	}
	_ = g.Wait() // each scope has its own error
}

func (s *Service) putAll(ctx context.Context, run []item) ([]store.Put, error) {
	episodes := make([]memory.Episode, len(run))
	for i, it := range run {
		episodes[i] = it.episode
	}
	puts, err := s.deps.Episodes.PutEpisodes(ctx, episodes)
	if err != nil {
		return nil, fmt.Errorf("store episodes: %w", err)
	}
	return puts, nil
}

// endSession records that a session is over.
func (s *Service) endSession(ctx context.Context, it item, last *announcements) {
	if len(last.open([]item{it})) == 0 {
		return
	}
	in := it.end
	at, _, err := s.cfg.happened(in.Data.Timestamp.Time, arrival(in.Meta), nil)
	if err != nil {
		it.entry.Err = err
		return
	}
	state, err := s.deps.Episodes.EndSession(ctx, in.Scope, events.SessionEnd{
		Session:     in.Scope.Session,
		LastOrdinal: in.Data.LastOrdinal,
		Cause:       in.Data.Cause,
		At:          at,
	})
	if err != nil {
		last.failed([]item{it}, fmt.Errorf("end session: %w", err))
		return
	}
	last.say(it.entry, state, "")
}
