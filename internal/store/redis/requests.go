package redis

import (
	"context"
	"time"

	"palimpsest/internal/store"
	"palimpsest/pkg/scope"
)

func (s *Store) requestKey(r store.Request) string {
	return s.layout().shared(keyRequest, token(r.Project, r.Route, r.Key))
}

// Begin implements [store.Requests]. One command sets the row if it is absent, and
// returns it otherwise.
func (s *Store) Begin(ctx context.Context, r store.Request) (*store.Request, error) {
	r.Status, r.Body = 0, nil
	if !r.Expires.After(s.cfg.Now()) {
		return nil, nil //nolint:nilnil // it has expired, so none stands
	}
	raw, err := encode("request", r)
	if err != nil {
		return nil, err
	}
	reply, err := s.call(ctx, "SET", s.requestKey(r), raw, "NX", "GET", "PXAT", r.Expires.UnixMilli())
	if err != nil || reply == nil {
		return nil, err
	}
	var known store.Request
	if err := decode("request", []byte(text(reply)), &known); err != nil {
		return nil, err
	}
	if known.BodyHash != r.BodyHash {
		return nil, store.ErrMismatch
	}
	return &known, nil
}

// Finish implements [store.Requests].
func (s *Store) Finish(ctx context.Context, r store.Request) error {
	raw, err := encode("request", r)
	if err == nil {
		err = s.setUntil(ctx, s.requestKey(r), raw, r.Expires)
	}
	return err
}

// setUntil keeps a value until an instant; one of the past is forgotten at once.
func (s *Store) setUntil(ctx context.Context, key string, value any, expires time.Time) error {
	if !expires.After(s.cfg.Now()) {
		_, err := s.call(ctx, "DEL", key)
		return err
	}
	_, err := s.call(ctx, "SET", key, value, "PXAT", expires.UnixMilli())
	return err
}

// Cached implements [store.Cache].
func (s *Store) Cached(ctx context.Context, fact scope.Scope, key string) ([]byte, error) {
	if err := fact.Validate(); err != nil {
		return nil, err
	}
	reply, err := s.call(ctx, "GET", s.place(fact).row(kindCached, key))
	if err != nil || reply == nil {
		return nil, err
	}
	return []byte(text(reply)), nil
}

// PutCached implements [store.Cache].
func (s *Store) PutCached(ctx context.Context, fact scope.Scope, key string, value []byte, expires time.Time) error {
	if err := fact.Validate(); err != nil {
		return err
	}
	if value == nil {
		value = []byte{}
	}
	return s.setUntil(ctx, s.place(fact).row(kindCached, key), value, expires)
}
