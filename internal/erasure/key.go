package erasure

import (
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/uuid"
)

// KeyFile holds the secret of a data directory, 32 bytes in hex, mode 0600. A
// backup needs it: without it a receipt cannot be matched to a user.
const KeyFile = "erasure.key"

// Key signs receipts and hashes names.
type Key struct {
	sign ed25519.PrivateKey
	mac  []byte
}

// OpenKey reads the key of a data directory, and makes one where there is none.
func OpenKey(dir string) (*Key, error) {
	path := filepath.Join(dir, KeyFile)
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		secret := make([]byte, ed25519.SeedSize)
		_, _ = rand.Read(secret) // never fails
		raw = []byte(hex.EncodeToString(secret) + "\n")
		err = write(path, raw)
	}
	if err != nil {
		return nil, fmt.Errorf("open erasure key: %w", err)
	}
	secret, err := hex.DecodeString(strings.TrimSpace(string(raw)))
	if err != nil || len(secret) != ed25519.SeedSize {
		return nil, fmt.Errorf("open erasure key: %s does not hold %d bytes in hex", path, ed25519.SeedSize)
	}
	seed, err := hkdf.Key(sha256.New, secret, nil, "palimpsest receipt", ed25519.SeedSize)
	if err != nil {
		return nil, fmt.Errorf("open erasure key: %w", err)
	}
	mac, err := hkdf.Key(sha256.New, secret, nil, "palimpsest tombstone", sha256.Size)
	if err != nil {
		return nil, fmt.Errorf("open erasure key: %w", err)
	}
	return &Key{sign: ed25519.NewKeyFromSeed(seed), mac: mac}, nil
}

// Public is the key that checks the receipts, in hex.
func (k *Key) Public() string {
	return hex.EncodeToString(k.sign.Public().(ed25519.PublicKey)) //nolint:forcetypeassert // documented
}

// Hash is the keyed hash of a user of a project.
func (k *Key) Hash(project, user string) string {
	h := hmac.New(sha256.New, k.mac)
	_, _ = fmt.Fprintf(h, "%d:%s%s", len(project), project, user) // a hash does not fail
	return hex.EncodeToString(h.Sum(nil))
}

// request is the id of the job that was asked for with a key. The text that is hashed
// differs from that of a user, which begins with a digit.
func (k *Key) request(project, key string) string {
	h := hmac.New(sha256.New, k.mac)
	_, _ = fmt.Fprintf(h, "request %d:%s%s", len(project), project, key) // a hash does not fail
	id, _ := uuid.FromBytes(h.Sum(nil)[:16])                             // of 16 bytes it is one
	return id.String()
}

// write replaces a file in one step, as durably as the disk is. Other users cannot
// read it at any time.
func write(path string, content []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".erasure-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }()
	_, err = f.Write(content)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
