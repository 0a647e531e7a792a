// Package doctor checks an installation: its version, ports, data directory,
// engines, streams and clock, with one finding for each. It changes nothing.
package doctor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"
	"github.com/nats-io/nats.go/jetstream"

	"palimpsest/internal/broker"
	"palimpsest/internal/embed"
	"palimpsest/internal/topology"
)

const (
	// clockTolerance is how far two clocks may differ. The header with the server's
	// time counts whole seconds.
	clockTolerance = 2 * time.Second
	// limit is how long a server has to answer a check.
	limit = 5 * time.Second
)

// Finding is the result of one check of an installation.
type Finding struct {
	Check string `json:"check"`
	OK    bool   `json:"ok"`
	Text  string `json:"text"`
}

// Installation is what is checked.
type Installation struct {
	Version string
	// Server is the HTTP server that the user named; empty for the one that listens
	// at Listen.
	Server, Listen string
	// Ready returns nil if the HTTP server is ready.
	Ready func(context.Context) error
	// Broker is the address of an embedded broker; empty where NATS is a server.
	Broker string
	// Data is the data directory; empty where none is used.
	Data string
	// NATS, Memory and Audit are the engines.
	NATS, Memory, Audit Engine
	// Embedder opens the embedder.
	Embedder func() (embed.Embedder, error)
	// Connect connects to the broker; the caller calls done. Streams are the declared ones.
	Connect func() (js jetstream.JetStream, done func(), err error)
	Streams topology.Declaration
	// Models are the language models; none where rule packs extract.
	Models []Model
}

// Engine is a file or a server.
type Engine struct {
	File  string // the path of a file; empty for a server
	URL   string // of a server, without its password
	Reach func(context.Context) error
}

// examination collects findings. Later checks use what earlier ones learned.
type examination struct {
	Installation

	ctx    context.Context //nolint:containedctx // an examination is one call, and lives as long
	found  []Finding
	peer   *peer           // the Palimpsest that answers over HTTP; nil for none
	newest topology.Newest // of the messages in the streams
}

// Examine checks an installation, and reports a failure as a finding.
func Examine(ctx context.Context, of Installation) []Finding {
	e := &examination{ctx: ctx, Installation: of}
	answer, err := e.http()
	e.check("version", e.version)
	e.check("config", func() (string, error) { return "valid", nil })
	e.check("http", func() (string, error) { return answer, err })
	for _, c := range []struct {
		name string
		ask  func() (string, error)
	}{
		{"nats", e.nats}, {"data", e.data}, {"embedder", e.embedder},
		{"memory", func() (string, error) { return e.engine(e.Memory) }},
		{"audit", func() (string, error) { return e.engine(e.Audit) }},
		{"streams", e.streams}, {"clock", e.clock},
		{"llm", func() (string, error) { return AskModels(e.ctx, e.Models) }},
	} {
		e.check(c.name, c.ask)
	}
	return e.found
}

// Misconfigured are the findings where the configuration cannot be read.
func Misconfigured(version string, err error) []Finding {
	e := &examination{Installation: Installation{Version: version}}
	e.check("version", e.version)
	e.check("config", func() (string, error) { return "", err })
	return e.found
}

// check adds the finding of one check.
func (e *examination) check(name string, ask func() (string, error)) {
	text, err := ask()
	if err != nil {
		text = err.Error()
	}
	e.found = append(e.found, Finding{Check: name, OK: err == nil, Text: text})
}

func (e *examination) version() (string, error) {
	own := fmt.Sprintf("%s, %s, %s/%s", e.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	if e.peer != nil && e.peer.Version != e.Version {
		return "", fmt.Errorf("%s; the server is %s", own, e.peer.Version)
	}
	return own, nil
}

// data checks the data directory and the disk below it.
func (e *examination) data() (string, error) {
	if e.Data == "" {
		return "not used", nil
	}
	dir := e.Data
	if err := Writable(dir); err != nil {
		return "", err
	}
	if _, err := os.Stat(dir); os.IsNotExist(err) {
		return dir + " does not exist yet", nil
	}
	space, err := broker.Measure(dir)
	if err != nil {
		return "", fmt.Errorf("%s: %w", dir, err)
	}
	if err := space.Check(); err != nil {
		return "", fmt.Errorf("%s: %w", dir, err)
	}
	return fmt.Sprintf("%s is writable, %s free", dir, humanize.IBytes(uint64(space.Free))), nil
}

// engine checks an engine that is a file, or asks the server.
func (e *examination) engine(of Engine) (string, error) {
	if of.File == "" {
		return e.ask(of)
	}
	info, err := os.Stat(of.File)
	switch {
	case os.IsNotExist(err):
		return of.File + " does not exist yet", nil
	case err != nil:
		return "", err
	}
	return fmt.Sprintf("%s, %s", of.File, humanize.IBytes(uint64(info.Size()))), nil
}

func (e *examination) ask(server Engine) (string, error) {
	ctx, cancel := context.WithTimeout(e.ctx, limit)
	defer cancel()
	began := time.Now()
	if err := server.Reach(ctx); err != nil {
		return "", err
	}
	return fmt.Sprintf("%s answers in %v", server.URL, time.Since(began).Round(100*time.Microsecond)), nil
}

// streams compares the broker with the declared streams.
func (e *examination) streams() (string, error) {
	js, done, err := e.Connect()
	if e.Broker != "" && errors.Is(err, broker.ErrNotRunning) {
		return "not asked: no Palimpsest runs on " + e.Data, nil
	}
	if err != nil {
		return "", err
	}
	defer done()
	ctx, cancel := context.WithTimeout(e.ctx, limit)
	defer cancel()
	return e.compare(ctx, js)
}

func (e *examination) compare(ctx context.Context, js jetstream.JetStream) (string, error) {
	differences, err := topology.Diff(ctx, js, e.Streams)
	if err != nil {
		return "", err
	}
	if e.newest, err = topology.NewestMessage(ctx, js, e.Streams); err != nil {
		return "", err
	}
	if len(differences) > 0 {
		return "", fmt.Errorf("%s, the first: %v", english.Plural(len(differences), "difference", ""), differences[0])
	}
	return english.Plural(len(e.Streams.Streams), "stream", "") + " as declared", nil
}

// clock compares the clock with that of the server and the times of messages, which
// it must not be behind.
func (e *examination) clock() (string, error) {
	now := time.Now()
	text := now.Format(time.RFC3339)
	if e.peer != nil {
		if off := e.peer.at.Sub(e.peer.asked); off.Abs() > clockTolerance {
			return "", fmt.Errorf("%s; the server's clock differs by %v", text, off.Round(time.Second))
		}
		text += ", as the server's"
	}
	if ahead := e.newest.At.Sub(now); ahead > clockTolerance {
		return "", fmt.Errorf("%s is %v behind the newest message of %s", text, ahead.Round(time.Second), e.newest.Stream)
	}
	return text, nil
}
