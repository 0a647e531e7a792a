package llm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
)

// Ladder is a provider as a model: it goes down the modes until the endpoint takes
// one, and stays there.
type Ladder struct {
	provider Provider
	modes    []Mode
	at       atomic.Int32 // index of the mode that the endpoint takes
}

// New returns the model of a provider. It asks in the mode only, or where that is
// empty in the most reliable mode that the endpoint takes, which the first request
// with a schema finds out.
func New(p Provider, only Mode) (*Ladder, error) {
	modes := p.Modes()
	if only != "" {
		if !slices.Contains(modes, only) {
			return nil, fmt.Errorf("llm: %s has no mode %q, only %v", p.Info().Provider, only, modes)
		}
		modes = []Mode{only}
	}
	return &Ladder{provider: p, modes: modes}, nil
}

// Info implements [Model].
func (l *Ladder) Info() Info { return l.provider.Info() }

// Mode is the mode in which the endpoint was asked last, or will be first.
func (l *Ladder) Mode() Mode { return l.modes[l.at.Load()] }

// Complete implements [Model].
func (l *Ladder) Complete(ctx context.Context, req Request) (Reply, error) {
	if req.MaxTokens == 0 {
		req.MaxTokens = DefaultMaxTokens
	}
	if req.Schema == nil {
		return l.provider.Ask(ctx, req, ModePlain)
	}
	first := int(l.at.Load())
	var refused error // of the best mode: it is what the endpoint says of the request
	for i := first; i < len(l.modes); i++ {
		reply, err := l.provider.Ask(ctx, inMode(req, l.modes[i]), l.modes[i])
		if !errors.Is(err, ErrInvalid) {
			if err == nil && i > first {
				l.at.CompareAndSwap(int32(first), int32(i))
			}
			return reply, err
		}
		if refused == nil {
			refused = err
		}
	}
	return Reply{}, refused
}

// inMode describes the schema in the instruction where nothing else would.
func inMode(req Request, mode Mode) Request {
	if mode == ModePlain {
		req.System += "\n\nAnswer with one JSON object and nothing else. It must fit this JSON schema:\n" + string(req.Schema)
	}
	return req
}
