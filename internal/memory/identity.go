package memory

import (
	"crypto/md5" //nolint:gosec // names content for clients that expect md5; proves nothing
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// FactID is the deterministic id of a fact: UUID version 7 layout, its time the
// earliest source's Timestamp, the rest from SHA-256 over fact scope, rule,
// source ids, kind and normalised text. The same cause gives the same id on
// every attempt, however batches were cut.
func FactID(fact scope.Scope, ruleID string, sources []string, kind events.FactKind, text string, earliest time.Time) string {
	ids := slices.Clone(sources)
	slices.Sort(ids)
	parts := append([]string{fact.Project, fact.Key(), ruleID, string(kind), Normalize(text)}, ids...)
	sum := events.HashSum(parts...)
	var id uuid.UUID
	var millis [8]byte
	binary.BigEndian.PutUint64(millis[:], uint64(max(earliest.UnixMilli(), 0)))
	copy(id[:6], millis[2:])
	copy(id[6:], sum[:10])
	id[6] = id[6]&0x0f | 0x70
	id[8] = id[8]&0x3f | 0x80
	return id.String()
}

// EntityID is the deterministic id of an entity within its fact scope.
func EntityID(fact scope.Scope, name string, kind events.EntityType) string {
	return "ent_" + events.HashID(fact.Project, fact.Key(), EntityKey(name), string(kind))
}

// HashText is Fact.Hash: the md5 of the text in hex.
func HashText(text string) string {
	sum := md5.Sum([]byte(text)) //nolint:gosec // see the import
	return hex.EncodeToString(sum[:])
}

// Normalize folds case and compatibility forms and collapses white space, so
// that texts that read the same compare equal.
func Normalize(text string) string {
	if isASCII(text) { // has no compatibility forms, and folds to lower case
		return collapse(strings.ToLower(text))
	}
	return collapse(cases.Fold().String(norm.NFKC.String(text)))
}

func isASCII(text string) bool {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// collapse makes one space of each run of white space, and none at the ends.
func collapse(text string) string { return strings.Join(strings.Fields(text), " ") }

// EntityKey is what entity names are compared by.
func EntityKey(name string) string { return Normalize(name) }

// String renders {id}@{revision}.
func (a Address) String() string { return a.ID + "@" + strconv.FormatUint(a.Revision, 10) }

// AddressOf is the address of a version.
func AddressOf(f events.Fact) Address { return Address{ID: f.ID, Revision: f.Revision} }

// ParseAddress is the inverse of [Address.String].
func ParseAddress(s string) (Address, error) {
	id, rev, ok := strings.Cut(s, "@")
	n, err := strconv.ParseUint(rev, 10, 64)
	if !ok || err != nil || id == "" || n == 0 {
		return Address{}, fmt.Errorf("memory: %q is not a version address {id}@{revision}", s)
	}
	return Address{ID: id, Revision: n}, nil
}

// ValidAt reports whether a fact is valid at t: ValidFrom ≤ t, and ValidUntil
// absent or after t.
func ValidAt(f events.Fact, t time.Time) bool {
	return !f.ValidFrom.After(t) && (f.ValidUntil == nil || t.Before(*f.ValidUntil))
}
