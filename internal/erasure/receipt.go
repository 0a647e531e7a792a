package erasure

import (
	"bytes"
	"crypto/ed25519"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"palimpsest/pkg/api"
)

// ErrReceipt: a receipt was changed, or another key signed it.
var ErrReceipt = errors.New("erasure: receipt does not verify")

// Receipt is an erasure: a job until it is done, and then a receipt and tombstone.
type Receipt = api.Receipt

// Place is one of the places that held data of the user.
type Place = api.ErasedPlace

// signed is what the signature is over.
func signed(r Receipt) ([]byte, error) {
	r.Signature = ""
	return json.Marshal(r)
}

func (k *Key) seal(r *Receipt) error {
	r.PublicKey = k.Public()
	raw, err := signed(*r)
	if err != nil {
		return err
	}
	r.Signature = hex.EncodeToString(ed25519.Sign(k.sign, raw))
	return nil
}

// Verify reads a receipt and checks its signature, by the key that it names; by
// public where that is not empty. The error of a receipt that was changed wraps
// [ErrReceipt].
func Verify(raw []byte, public string) (Receipt, error) {
	var r Receipt
	in := json.NewDecoder(bytes.NewReader(raw))
	in.DisallowUnknownFields()
	if err := in.Decode(&r); err != nil {
		return r, fmt.Errorf("read receipt: %w", err)
	}
	if public != "" && public != r.PublicKey {
		return r, fmt.Errorf("%w: it is signed by the key %s", ErrReceipt, r.PublicKey)
	}
	key, err := hex.DecodeString(r.PublicKey)
	if err != nil || len(key) != ed25519.PublicKeySize {
		return r, fmt.Errorf("%w: it has no public key", ErrReceipt)
	}
	signature, err := hex.DecodeString(r.Signature)
	if err != nil {
		return r, fmt.Errorf("%w: its signature is not hex", ErrReceipt)
	}
	content, err := signed(r)
	if err != nil {
		return r, err
	}
	if !ed25519.Verify(key, content, signature) {
		return r, fmt.Errorf("%w: the signature is of other data", ErrReceipt)
	}
	if !r.Done() {
		return r, fmt.Errorf("%w: the erasure is not finished", ErrReceipt)
	}
	return r, nil
}
