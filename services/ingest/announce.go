package ingest

import (
	"sync"

	"palimpsest/internal/memory"
	"palimpsest/internal/pipeline"
	"palimpsest/internal/store"
	"palimpsest/pkg/events"
)

// announcements are the news of a batch, one of each fact scope.
type announcements struct {
	mu     sync.Mutex
	news   map[string]announcement // by the key of the entries
	blocks map[string]error        // keys of which nothing more may be stored
	added  int                     // episodes that were not known before
}

// announcement is the newest state of a fact scope and the message that led to it.
type announcement struct {
	entry     *pipeline.Entry
	state     memory.State
	episodeID string
}

// open leaves out what stands behind a message that could not be stored.
func (a *announcements) open(run []item) []item {
	if len(a.blocks) == 0 {
		return run
	}
	open := make([]item, 0, len(run))
	for _, it := range run {
		if err := a.blocks[it.entry.Key]; err != nil {
			it.entry.Err = err
			continue
		}
		open = append(open, it)
	}
	return open
}

// failed keeps items, and all behind them with their keys, for another attempt.
func (a *announcements) failed(run []item, err error) {
	if a.blocks == nil {
		a.blocks = map[string]error{}
	}
	for _, it := range run {
		it.entry.Err = err
		a.blocks[it.entry.Key] = err
	}
}

func (a *announcements) stored(run []item, puts []store.Put) {
	for i, it := range run {
		if put := puts[i]; put.Conflict {
			it.entry.Err = pipeline.Rejectf(events.CodeIDConflict, "id",
				"id: %.64q is known with other content, as ordinal %d", put.Episode.ID, put.Episode.Ordinal)
		} else {
			a.say(it.entry, put.State, put.Episode.ID)
			if !put.Known {
				a.added++
			}
		}
	}
}

func (a *announcements) say(e *pipeline.Entry, state memory.State, episodeID string) {
	if a.news == nil {
		a.news = map[string]announcement{}
	}
	a.news[e.Key] = announcement{e, state, episodeID}
}

// announce has each scope's newest message followed by its news. A scope in which
// nothing was said has none.
func (a *announcements) announce(s *Service) {
	now := s.deps.Now().UTC()
	for _, n := range a.news {
		if n.state.LastOrdinal == 0 {
			continue
		}
		n.entry.Out = []events.Payload{events.EpisodeStored{
			Header:      events.Header{Scope: n.state.Scope, Incarnation: n.state.Incarnation},
			EpisodeID:   n.episodeID,
			LastOrdinal: n.state.LastOrdinal,
			StoredAt:    now,
		}}
	}
}
