package auth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// The two kinds of entries of the bucket.
const (
	keyEntry = "key."
	useEntry = "use."
)

// Use is how much a key was used.
type Use struct {
	Last time.Time `json:"last"`
	// Day is the day, in UTC, that Today counts the requests of.
	Day   string `json:"day"`
	Today int64  `json:"today"`
	Total int64  `json:"total"`
}

// Used is a key and how much it was used.
type Used struct {
	Key
	Use Use `json:"use,omitzero"`
}

// Public is u without the hashes, as it is shown.
func (u Used) Public() Used {
	u.Hash, u.Former = "", ""
	return u
}

// On is the number of requests on the day of an instant.
func (u Use) On(now time.Time) int64 {
	if u.Day != now.UTC().Format(dayForm) {
		return 0
	}
	return u.Today
}

// Keys changes the keys of an installation. Its caller needs a connection that may
// write the bucket; the query service has none.
type Keys struct {
	bucket Bucket
	now    func() time.Time
}

// NewKeys returns the keys in a bucket.
func NewKeys(bucket Bucket, now func() time.Time) *Keys { return &Keys{bucket, now} }

// Create keeps a new key, and returns it with its token. The token cannot be had
// again. ID, Hash and CreatedAt of k are ignored.
func (k *Keys) Create(ctx context.Context, key Key) (Key, string, error) {
	secret := random(secretBytes)
	key.ID, key.Hash, key.CreatedAt = random(idBytes), hashOf(secret), k.now().UTC()
	key.Former, key.FormerUntil, key.RevokedAt, key.RotatedAt = "", nil, nil, nil
	if err := key.Validate(); err != nil {
		return key, "", fmt.Errorf("create key: %w", err)
	}
	if err := k.bucket.Put(ctx, keyEntry+key.ID, key, 0); err != nil {
		return key, "", fmt.Errorf("create key: %w", err)
	}
	return key, token(key.ID, secret), nil
}

// Revoke ends a key for good. One that is revoked already stays as it is.
func (k *Keys) Revoke(ctx context.Context, id string) (Key, error) {
	return k.change(ctx, id, func(key *Key) error {
		if key.RevokedAt == nil {
			now := k.now().UTC()
			key.RevokedAt = &now
		}
		return nil
	})
}

// Rotate gives a key another secret, and returns the new token. The secret before
// is accepted for grace more.
func (k *Keys) Rotate(ctx context.Context, id string, grace time.Duration) (Key, string, error) {
	secret := random(secretBytes)
	key, err := k.change(ctx, id, func(key *Key) error {
		now := k.now().UTC()
		if err := key.usable(now); err != nil {
			return err
		}
		key.Former, key.FormerUntil = "", nil
		if grace > 0 {
			until := now.Add(grace)
			key.Former, key.FormerUntil = key.Hash, &until
		}
		key.Hash, key.RotatedAt = hashOf(secret), &now
		return nil
	})
	return key, token(key.ID, secret), err
}

// List returns all keys, revoked ones too, oldest first.
func (k *Keys) List(ctx context.Context) ([]Used, error) {
	found := map[string]Used{}
	err := k.read(ctx, func(e entry) {
		u := found[e.id]
		if e.key != nil {
			u.Key = *e.key
		} else {
			u.Use = *e.use
		}
		found[e.id] = u
	})
	if err != nil {
		return nil, fmt.Errorf("list keys: %w", err)
	}
	var all []Used
	for _, u := range found {
		if u.ID != "" {
			all = append(all, u)
		}
	}
	slices.SortFunc(all, func(a, b Used) int {
		if c := a.CreatedAt.Compare(b.CreatedAt); c != 0 {
			return c
		}
		return strings.Compare(a.ID, b.ID)
	})
	return all, nil
}

// changeTries bounds how often a change meets another one of the same key.
const changeTries = 10

func (k *Keys) change(ctx context.Context, id string, do func(*Key) error) (Key, error) {
	var key Key
	if !isHex(id, idBytes) {
		return key, ErrNotFound
	}
	for try := 1; ; try++ {
		key = Key{}
		revision, err := k.bucket.Get(ctx, keyEntry+id, &key)
		if err != nil {
			return key, fmt.Errorf("read key: %w", err)
		}
		if revision == 0 {
			return key, ErrNotFound
		}
		if err := do(&key); err != nil {
			return key, err
		}
		err = k.bucket.Put(ctx, keyEntry+id, key, revision)
		if err == nil {
			return key, nil
		}
		if !errors.Is(err, ErrChanged) || try == changeTries {
			return key, fmt.Errorf("change key: %w", err)
		}
	}
}

// entry is one change of the bucket: of a key, or of its use.
type entry struct {
	id  string
	key *Key
	use *Use
}

// entries yields those of a bucket that are ours.
func entries(yield func(entry)) func(name string, value []byte) {
	return func(name string, value []byte) {
		if id, ok := strings.CutPrefix(name, keyEntry); ok {
			var key Key
			if json.Unmarshal(value, &key) != nil || key.ID != id {
				key = Key{} // deleted by another tool, or of a later version: no token is good
			}
			yield(entry{id: id, key: &key})
		} else if id, ok := strings.CutPrefix(name, useEntry); ok {
			var use Use
			if json.Unmarshal(value, &use) == nil {
				yield(entry{id: id, use: &use})
			}
		}
	}
}

// read yields what the bucket holds now.
func (k *Keys) read(ctx context.Context, yield func(entry)) error {
	changes, err := k.bucket.Load(ctx, entries(yield))
	if err == nil {
		changes.Close()
	}
	return err
}
