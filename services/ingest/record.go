package ingest

import (
	"context"
	"fmt"

	"palimpsest/internal/memory"
	"palimpsest/internal/pipeline"
	"palimpsest/pkg/events"
)

// record stores episodes of one fact scope and announces the last. What is
// stored already is announced all the same: the first announcement may have been
// lost with the process that was to make it.
func (s *Service) record(ctx context.Context, in []events.Event[events.EpisodeRecorded]) ([]events.Payload, error) {
	episodes := make([]memory.Episode, len(in))
	for i, e := range in {
		var err error
		if episodes[i], err = s.cfg.validate(e); err != nil {
			return nil, err
		}
	}
	puts, err := s.deps.Episodes.PutEpisodes(ctx, episodes)
	if err != nil {
		return nil, fmt.Errorf("store episodes: %w", err)
	}
	for _, put := range puts {
		if put.Conflict {
			return nil, pipeline.Rejectf(events.CodeIDConflict, "id",
				"id: %.64q is known with other content, as ordinal %d", put.Episode.ID, put.Episode.Ordinal)
		}
	}
	s.stored.Add(1)
	s.Wake()
	last := puts[len(puts)-1]
	return s.announce(last.State, last.Episode.ID), nil
}

// end records that a session is over and announces it.
func (s *Service) end(ctx context.Context, in events.Event[events.SessionEnded]) ([]events.Payload, error) {
	at, _, err := s.cfg.happened(in.Data.Timestamp.Time, arrival(in.Meta), nil)
	if err != nil {
		return nil, err
	}
	state, err := s.deps.Episodes.EndSession(ctx, in.Scope, events.SessionEnd{
		Session:     in.Scope.Session,
		LastOrdinal: in.Data.LastOrdinal,
		Cause:       in.Data.Cause,
		At:          at,
	})
	if err != nil {
		return nil, fmt.Errorf("end session: %w", err)
	}
	return s.announce(state, ""), nil
}

// announce wakes whoever waits for news of the scope. A scope in which nothing
// was said has no news.
func (s *Service) announce(state memory.State, episodeID string) []events.Payload {
	if state.LastOrdinal == 0 {
		return nil
	}
	return []events.Payload{events.EpisodeStored{
		Header:      events.Header{Scope: state.Scope, Incarnation: state.Incarnation},
		EpisodeID:   episodeID,
		LastOrdinal: state.LastOrdinal,
		StoredAt:    s.deps.Now().UTC(),
	}}
}
