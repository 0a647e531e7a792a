package auth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"palimpsest/internal/tail"
	"palimpsest/internal/topology"
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
	js  jetstream.JetStream
	now func() time.Time
}

// NewKeys returns the keys that are kept on the broker behind js.
func NewKeys(js jetstream.JetStream, now func() time.Time) *Keys { return &Keys{js, now} }

// Create keeps a new key, and returns it with its token. The token cannot be had
// again. ID, Hash and CreatedAt of k are ignored.
func (k *Keys) Create(ctx context.Context, key Key) (Key, string, error) {
	secret := random(secretBytes)
	key.ID, key.Hash, key.CreatedAt = random(idBytes), hashOf(secret), k.now().UTC()
	key.Former, key.FormerUntil, key.RevokedAt, key.RotatedAt = "", nil, nil, nil
	if err := key.Validate(); err != nil {
		return key, "", fmt.Errorf("create key: %w", err)
	}
	if err := put(ctx, k.js, keyEntry+key.ID, key, 0); err != nil {
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
		revision, err := get(ctx, k.js, keyEntry+id, &key)
		if err != nil {
			return key, fmt.Errorf("read key: %w", err)
		}
		if revision == 0 {
			return key, ErrNotFound
		}
		if err := do(&key); err != nil {
			return key, err
		}
		err = put(ctx, k.js, keyEntry+id, key, revision)
		if err == nil {
			return key, nil
		}
		if !errors.Is(err, errChanged) || try == changeTries {
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

// readEntry returns nil for a message that is none of ours.
func readEntry(m tail.Message) *entry {
	name := strings.TrimPrefix(m.Subject, topology.SubjectKeys)
	if id, ok := strings.CutPrefix(name, keyEntry); ok {
		var key Key
		if json.Unmarshal(m.Data, &key) != nil || key.ID != id {
			key = Key{} // deleted by another tool, or of a later version: no token is good
		}
		return &entry{id: id, key: &key}
	} else if id, ok := strings.CutPrefix(name, useEntry); ok {
		var use Use
		if json.Unmarshal(m.Data, &use) == nil {
			return &entry{id: id, use: &use}
		}
	}
	return nil
}

// readWait bounds one read of what the bucket holds already.
const readWait = 2 * time.Second

// read yields what the bucket holds now.
func (k *Keys) read(ctx context.Context, yield func(entry)) error {
	reader, err := load(ctx, k.js, yield)
	if err == nil {
		reader.Close()
	}
	return err
}

// load yields what the bucket holds now, and returns a reader of what follows.
func load(ctx context.Context, js jetstream.JetStream, yield func(entry)) (*tail.Reader, error) {
	stream, err := js.Stream(ctx, topology.StreamKeys)
	if err != nil {
		return nil, fmt.Errorf("open the bucket of keys: %w", err)
	}
	reader := tail.New(tail.Config{JS: js, Stream: topology.StreamKeys})
	state := stream.CachedInfo().State
	for state.Msgs > 0 && reader.At() < state.LastSeq {
		got, err := reader.Read(ctx, loadBatch, readWait)
		if err == nil && len(got) == 0 {
			err = context.DeadlineExceeded
		}
		if err != nil {
			reader.Close()
			return nil, fmt.Errorf("read the bucket of keys: %w", err)
		}
		for _, m := range got {
			if e := readEntry(m); e != nil {
				yield(*e)
			}
		}
	}
	return reader, nil
}

const loadBatch = 256
