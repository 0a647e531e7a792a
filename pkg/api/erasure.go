package api

import "time"

// Erasure is the removal of everything of one user.
type Erasure struct {
	ID     string `json:"id"`
	Status string `json:"status" enum:"pending,done"`
	// Receipt is there once the erasure is done.
	Receipt *Receipt `json:"receipt,omitempty"`
}

// Receipt is an erasure: a job while FinishedAt is nil, and then a receipt and
// tombstone. It names no user.
type Receipt struct {
	ID      string `json:"id"`
	Project string `json:"project"`
	Whom    string `json:"whom" doc:"Keyed hash of the user."`
	// Incarnation is that of the user's scopes from then on, from 1: work of an older
	// one is refused.
	Incarnation uint64     `json:"incarnation"`
	AskedAt     time.Time  `json:"asked_at"`
	FinishedAt  *time.Time `json:"finished_at,omitempty"`
	// Until is the last sequence of EPISODES when the data was erased. An episode of
	// the user at or below it is one that was erased.
	Until  uint64        `json:"until" doc:"Episodes up to this sequence of EPISODES were erased."`
	Places []ErasedPlace `json:"places"`
	// NothingFound says that no place had data of the user: the name may be misspelt. The
	// tombstone is in force all the same.
	NothingFound bool `json:"nothing_found,omitempty" doc:"No place had anything of the user: check the spelling."`
	// Unreachable says what the erasure cannot reach.
	Unreachable []string `json:"unreachable,omitempty" doc:"What the erasure cannot reach."`
	// PublicKey is Ed25519, in hex; so is Signature, over the JSON of the receipt
	// with an empty signature left out.
	PublicKey string `json:"public_key,omitempty"`
	Signature string `json:"signature,omitempty"`
}

// ErasedPlace is one of the places that held data of the user.
type ErasedPlace struct {
	Name    string            `json:"name"`
	Removed map[string]uint64 `json:"removed" doc:"How much of which kind was deleted."`
	Left    uint64            `json:"left" doc:"What a scan found behind the deletion: 0 in a receipt."`
	At      time.Time         `json:"at"`
	// Beyond says what of this place the erasure could not reach.
	Beyond []string `json:"beyond,omitempty" doc:"What of this place the erasure could not reach."`
}

// Done reports whether the erasure is finished.
func (r Receipt) Done() bool { return r.FinishedAt != nil }
