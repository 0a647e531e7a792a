package query

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"palimpsest/pkg/api"
	"palimpsest/pkg/events"
)

// repeatPatience bounds what the check of ids may cost a record.
const repeatPatience = time.Second

// checkRepeats refuses a message whose id is stored with other content. Otherwise
// ingest would put it into the dead letters after the API accepted it. It is no guarantee: two requests may race, and messages are
// accepted while the store does not answer.
func (s *Service) checkRepeats(ctx context.Context, r said) error {
	places := map[string]int{}
	var ids []string
	for i, id := range r.ids {
		if id != "" {
			places[id] = i
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, repeatPatience)
	defer cancel()
	known, err := s.deps.Store.EpisodesByID(ctx, r.owner.Fact(), ids)
	if err != nil {
		s.failed(ctx, fmt.Errorf("look for known ids: %w", err))
		return nil
	}
	for _, e := range known {
		i, asked := places[e.ID]
		if !asked || e.Scope != r.owner || e.Source != source {
			continue
		}
		p := r.payloads[i]
		mode := events.Mode(either(string(p.Mode), string(events.ModePersistent)))
		if e.Content != p.Content || e.Role != p.Role || e.Mode != mode {
			return api.NewProblem(http.StatusConflict, api.CodeIDConflict, fmt.Sprintf("messages[%d].id", i),
				"is that of a message that was recorded with other content")
		}
	}
	return nil
}
