package chaos

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"palimpsest/internal/audit"
	"palimpsest/internal/topology"
)

// Engines are the engines of a run, open.
type Engines struct {
	JS      jetstream.JetStream
	Streams topology.Declaration
	Memory  interface {
		Projects(ctx context.Context) ([]string, error)
	}
	Log audit.Log
	// Named is how an error names the engine of a setting: nats.url, memory or audit.
	Named func(setting string) string
}

// ErrTaken means that an engine holds data or has clients.
var ErrTaken = errors.New("the engine is in use")

// TakenError says why an engine is not vacant. It is [ErrTaken].
type TakenError struct {
	Setting string // the setting that names the engine
	Reason  string // its data or its clients
}

func (e *TakenError) Error() string {
	return fmt.Sprintf("%s: %s: chaos needs an engine of its own, which holds nothing", e.Setting, e.Reason)
}

// Unwrap returns [ErrTaken].
func (e *TakenError) Unwrap() error { return ErrTaken }

// Vacant returns a [*TakenError] where an engine holds data or has clients: a run must
// not change the data of a user.
func (e Engines) Vacant(ctx context.Context) error {
	for _, look := range []func(context.Context) error{e.vacantStreams, e.vacantMemory, e.vacantAudit} {
		err := look(ctx)
		if taken := (*TakenError)(nil); errors.As(err, &taken) {
			return &TakenError{taken.Setting, e.Named(taken.Setting) + " " + taken.Reason}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (e Engines) vacantStreams(ctx context.Context) error {
	for _, s := range e.Streams.Streams {
		stream, err := e.JS.Stream(ctx, s.Config.Name)
		if err != nil {
			return fmt.Errorf("look at stream %s: %w", s.Config.Name, err)
		}
		if stream.CachedInfo().State.LastSeq > 0 {
			return &TakenError{"nats.url", "has or had messages in stream " + s.Config.Name}
		}
		for _, c := range s.Consumers {
			consumer, err := stream.Consumer(ctx, c.Durable)
			if err != nil {
				return fmt.Errorf("look at consumer %s: %w", c.Durable, err)
			}
			if consumer.CachedInfo().NumWaiting > 0 {
				return &TakenError{"nats.url", "has a process that reads " + c.Durable}
			}
		}
	}
	return nil
}

func (e Engines) vacantMemory(ctx context.Context) error {
	projects, err := e.Memory.Projects(ctx)
	if err != nil {
		return err
	}
	if len(projects) > 0 {
		return &TakenError{"memory", "holds memories of project " + projects[0]}
	}
	return nil
}

func (e Engines) vacantAudit(ctx context.Context) error {
	last, err := e.Log.LastSequence(ctx)
	if err != nil {
		return err
	}
	if last > 0 {
		return &TakenError{"audit", "holds an audit log"}
	}
	return nil
}

// DeadLetters counts the dead letters that were written since the stream was
// made, which a run finds or makes empty: a start drops what it mends.
func DeadLetters(ctx context.Context, js jetstream.JetStream) (uint64, error) {
	stream, err := js.Stream(ctx, topology.StreamDeadLetter)
	if err != nil {
		return 0, fmt.Errorf("count dead letters: %w", err)
	}
	return stream.CachedInfo().State.LastSeq, nil
}
