package broker

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/nats-io/nkeys"
)

// The files that an embedded broker keeps in its data directory.
const (
	// SeedFile holds the NKey seed with which the owner's own processes log in;
	// mode 0600.
	SeedFile = "broker.nk"
	// URLFile holds the address while the broker runs.
	URLFile = "broker.url"
	// lockFile is locked while the broker runs.
	lockFile = "broker.lock"
)

// Endpoint returns how another process of the owner connects to the embedded
// broker that runs on a data directory. The error wraps [ErrNotRunning] where
// none does.
func Endpoint(dir string) (ConnectConfig, error) {
	url, err := os.ReadFile(filepath.Join(dir, URLFile))
	if errors.Is(err, fs.ErrNotExist) {
		return ConnectConfig{}, fmt.Errorf("%w on %s", ErrNotRunning, dir)
	}
	if err != nil {
		return ConnectConfig{}, fmt.Errorf("read broker address: %w", err)
	}
	return ConnectConfig{
		URL:      strings.TrimSpace(string(url)),
		NKeySeed: filepath.Join(dir, SeedFile),
	}, nil
}

// credential returns the public key of the data directory's seed, which it
// makes if there is none, or none that others cannot have read.
func credential(dir string) (publicKey string, err error) {
	path := filepath.Join(dir, SeedFile)
	if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o077 == 0 {
		if public, err := publicKeyOf(path); err == nil {
			return public, nil
		}
	}
	pair, err := nkeys.CreateUser()
	if err != nil {
		return "", fmt.Errorf("make credential: %w", err)
	}
	defer pair.Wipe()
	seed, err := pair.Seed()
	if err != nil {
		return "", fmt.Errorf("make credential: %w", err)
	}
	if err := writePrivate(path, string(seed)+"\n"); err != nil {
		return "", fmt.Errorf("write credential: %w", err)
	}
	return pair.PublicKey()
}

func publicKeyOf(path string) (string, error) {
	seed, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	pair, err := nkeys.FromSeed([]byte(strings.TrimSpace(string(seed))))
	if err != nil {
		return "", err
	}
	defer pair.Wipe()
	public, err := pair.PublicKey()
	if err == nil && !nkeys.IsValidPublicUserKey(public) {
		err = errors.New("not a user key")
	}
	return public, err
}

// writePrivate replaces a file in one step. Other users cannot read it at any
// time.
func writePrivate(path, content string) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".broker-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }()
	_, err = f.WriteString(content)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
