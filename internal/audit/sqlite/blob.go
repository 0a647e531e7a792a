package sqlite

import (
	"bytes"
	"compress/flate"
	"encoding/json"
	"fmt"
	"io"

	"palimpsest/pkg/events"
)

// packer deflates effects; it keeps its tables, which are costly to make, from
// one to the next.
type packer struct {
	out     bytes.Buffer
	deflate *flate.Writer
}

func newPacker() (*packer, error) {
	w, err := flate.NewWriter(nil, flate.BestSpeed)
	if err != nil {
		return nil, fmt.Errorf("compress effect: %w", err)
	}
	return &packer{deflate: w}, nil
}

// pack is an effect as JSON, deflated. It is valid until the next call.
func (p *packer) pack(e events.EffectCommitted) ([]byte, error) {
	raw, err := events.MarshalEffect(e)
	if err != nil {
		return nil, fmt.Errorf("encode effect: %w", err)
	}
	p.out.Reset()
	p.deflate.Reset(&p.out)
	if _, err := p.deflate.Write(raw); err != nil {
		return nil, fmt.Errorf("compress effect: %w", err)
	}
	if err := p.deflate.Close(); err != nil {
		return nil, fmt.Errorf("compress effect: %w", err)
	}
	return p.out.Bytes(), nil
}

// unpack is the inverse of [packer.pack].
func unpack(blob []byte) (events.EffectCommitted, error) {
	r := flate.NewReader(bytes.NewReader(blob))
	defer r.Close() //nolint:errcheck // reads memory
	raw, err := io.ReadAll(r)
	if err != nil {
		return events.EffectCommitted{}, fmt.Errorf("expand effect: %w", err)
	}
	var e events.EffectCommitted
	if err := json.Unmarshal(raw, &e); err != nil {
		return events.EffectCommitted{}, fmt.Errorf("decode effect: %w", err)
	}
	return e, nil
}
