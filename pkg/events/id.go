package events

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
)

// HashID returns 32 hex digits of the SHA-256 over the parts, each prefixed by
// its length, so that no two lists of parts run together. It names everything
// whose identity follows from its cause.
func HashID(parts ...string) string {
	sum := HashSum(parts...)
	return hex.EncodeToString(sum[:16])
}

// HashSum is the whole digest behind [HashID].
func HashSum(parts ...string) [sha256.Size]byte {
	h := sha256.New()
	var size [8]byte
	for _, p := range parts {
		binary.BigEndian.PutUint64(size[:], uint64(len(p)))
		_, _ = h.Write(size[:])
		_, _ = h.Write([]byte(p))
	}
	return [sha256.Size]byte(h.Sum(nil))
}
