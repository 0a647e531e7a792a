package app

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
	"palimpsest/internal/config"
	"palimpsest/internal/topology"
)

// clockTolerance is how far two clocks may differ. The header with the server's
// time counts whole seconds.
const clockTolerance = 2 * time.Second

// Finding is the result of one check of an installation.
type Finding struct {
	Check string `json:"check"`
	OK    bool   `json:"ok"`
	Text  string `json:"text"`
}

// examination collects findings. Later checks use what earlier ones learned.
type examination struct {
	ctx   context.Context //nolint:containedctx // an examination is one call, and lives as long
	inv   *Invocation
	cfg   *Config
	found []Finding

	peer   *peer           // the Palimpsest that answers over HTTP; nil for none
	newest topology.Newest // of the messages in the streams
}

// Examine checks an installation: that of the data directory data, or of the
// configured one if data is empty. It changes nothing, and reports a failure as a
// finding.
func (inv *Invocation) Examine(data string) []Finding {
	e := &examination{ctx: inv.ctx, inv: inv}
	cfg, _, err := inv.Configuration(map[string]string{"data": data})
	e.cfg = cfg
	if err != nil {
		e.check("version", e.version)
		e.check("config", func() (string, error) { return "", err })
		return e.found
	}
	var httpSays string
	httpSays, err = e.http()
	e.check("version", e.version)
	e.check("config", func() (string, error) { return "valid", nil })
	e.check("http", func() (string, error) { return httpSays, err })
	for _, c := range []struct {
		name string
		ask  func() (string, error)
	}{
		{"nats", e.nats}, {"data", e.data}, {"embedder", e.cfg.Embedder.describe}, {"memory", e.memory}, {"audit", e.audit}, {"streams", e.streams}, {"clock", e.clock}, {"llm", e.llm},
	} {
		e.check(c.name, c.ask)
	}
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
	own := fmt.Sprintf("%s, %s, %s/%s", Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	if e.peer != nil && e.peer.Version != Version() {
		return "", fmt.Errorf("%s; the server is %s", own, e.peer.Version)
	}
	return own, nil
}

// data checks the data directory and the disk below it.
func (e *examination) data() (string, error) {
	if !e.cfg.local() {
		return "not used", nil
	}
	dir := e.cfg.Data
	if err := writable(dir); err != nil {
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

func (e *examination) memory() (string, error) { return e.engine("memory", memoryFile) }

func (e *examination) audit() (string, error) { return e.engine("audit", auditFile) }

// engine checks an engine that is a file, or asks the server.
func (e *examination) engine(key, file string) (string, error) {
	if e.cfg.engine(key) == backendFile {
		path := e.cfg.dataPath(file)
		info, err := os.Stat(path)
		switch {
		case os.IsNotExist(err):
			return path + " does not exist yet", nil
		case err != nil:
			return "", err
		}
		return fmt.Sprintf("%s, %s", path, humanize.IBytes(uint64(info.Size()))), nil
	}
	return e.server(key)
}

// server asks the server that a setting names.
func (e *examination) server(key string) (string, error) {
	for _, s := range e.cfg.servers() {
		if s.key != key {
			continue
		}
		ctx, cancel := context.WithTimeout(e.ctx, checkLimit)
		defer cancel()
		began := time.Now()
		if err := s.reach(ctx); err != nil {
			return "", e.cfg.engineError(&engineError{s.key, err})
		}
		return fmt.Sprintf("%s answers in %v", config.MaskURL(e.cfg.engine(key)), time.Since(began).Round(100*time.Microsecond)), nil
	}
	return "", errors.New(key + " names no server")
}

// streams compares the broker with the declared streams.
func (e *examination) streams() (string, error) {
	if e.cfg.NATS.URL == natsEmbedded {
		if _, err := broker.Endpoint(e.cfg.dataPath(natsDir)); errors.Is(err, broker.ErrNotRunning) {
			return "not asked: no Palimpsest runs on " + e.cfg.Data, nil
		}
	}
	conn, err := e.inv.brokerOf(e.cfg)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(e.ctx, checkLimit)
	defer cancel()
	js, err := broker.NewJetStream(conn)
	if err != nil {
		return "", err
	}
	return e.compare(ctx, js)
}

func (e *examination) compare(ctx context.Context, js jetstream.JetStream) (string, error) {
	decl := topology.Declare(e.cfg.topology())
	differences, err := topology.Diff(ctx, js, decl)
	if err != nil {
		return "", err
	}
	if e.newest, err = topology.NewestMessage(ctx, js, decl); err != nil {
		return "", err
	}
	if len(differences) > 0 {
		return "", fmt.Errorf("%s, the first: %v", english.Plural(len(differences), "difference", ""), differences[0])
	}
	return english.Plural(len(decl.Streams), "stream", "") + " as declared", nil
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
