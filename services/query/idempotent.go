package query

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"palimpsest/internal/auth"
	"palimpsest/internal/store"
	"palimpsest/pkg/api"
	"palimpsest/pkg/events"
)

// keepRequests is how long an Idempotency-Key is known.
const keepRequests = 24 * time.Hour

// KeyHeader is the header that every write takes.
type KeyHeader struct {
	Key string `header:"Idempotency-Key" maxLength:"256" doc:"The same key with the same body gives the same answer for 24 h."`
}

// reply is the answer to a request that changes something, with its status.
type reply[T any] struct {
	Status int
	Body   *T
	// pending: the work goes on, and asked again the answer may be another.
	pending bool
}

// written is the answer to a write.
type written = reply[api.Written]

// attempt is one run of a write. The ids of its events are derived from the
// correlation id, so that a second run changes nothing.
type attempt struct {
	correlation string
	// again: an earlier run of the same key was left without an answer.
	again bool
	// deadline ends the wait for an outcome; zero leaves it to Config.Wait.
	deadline time.Time
}

// once is [keep] for writes.
func (s *Service) once(
	ctx context.Context, project, route, key string, body []byte, do func(attempt) (*written, error),
) (*written, error) {
	return keep(ctx, s, project, route, key, body, do)
}

// keep runs do for a key that is new or whose run did not finish, and otherwise
// returns the earlier answer. A request that is always refused must be refused
// before, so that it does not use the key up.
func keep[T any](
	ctx context.Context, s *Service, project, route, key string, body []byte, do func(attempt) (*reply[T], error),
) (*reply[T], error) {
	if key == "" {
		return do(attempt{correlation: uuid.NewString()})
	}
	if c := auth.Of(ctx); len(c.Users) > 0 {
		route = c.KeyID + " " + route // an answer may tell of users that others may not read
	}
	sum := sha256.Sum256(body)
	request := store.Request{
		Project: project, Route: route, Key: key, BodyHash: hex.EncodeToString(sum[:]),
		CorrelationID: events.HashID("request", project, route, key), Expires: s.deps.Now().Add(keepRequests),
	}
	earlier, err := s.deps.Store.Begin(ctx, request)
	if err != nil {
		return nil, err
	}
	if earlier != nil && earlier.Status != 0 {
		var answer T
		if err := json.Unmarshal(earlier.Body, &answer); err != nil {
			return nil, err
		}
		return &reply[T]{Status: earlier.Status, Body: &answer}, nil
	}
	out, err := do(attempt{correlation: request.CorrelationID, again: earlier != nil})
	if err != nil || out.pending {
		return out, err
	}
	if request.Body, err = json.Marshal(out.Body); err != nil {
		return nil, err
	}
	request.Status = out.Status
	if err := s.deps.Store.Finish(ctx, request); err != nil {
		// It is done: asked again, the same is found out again.
		s.deps.Logger.WarnContext(ctx, "query: answer not kept", "error", err)
	}
	return out, nil
}
