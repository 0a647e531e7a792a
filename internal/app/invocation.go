package app

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"palimpsest/internal/auth"
	"palimpsest/internal/auth/bucket"
	"palimpsest/internal/broker"
	"palimpsest/internal/config"
	"palimpsest/internal/terminal"
	"palimpsest/internal/topology"
	"palimpsest/pkg/client"
	"palimpsest/pkg/scope"
)

// Flags are those of every command.
type Flags struct {
	ConfigFile string `name:"config" help:"Configuration file (YAML)." placeholder:"FILE"`
	JSON       bool   `name:"json" help:"Answer in JSON."`
	Server     string `name:"server" help:"HTTP address of a running Palimpsest; the configured one unless given." placeholder:"URL"`
	Project    string `name:"project" help:"Tenant; that of the API key, or \"default\", unless given." placeholder:"NAME"`
	APIKeyFile string `name:"api-key-file" help:"File that holds the API key; else PALIMPSEST_API_KEY is read." placeholder:"FILE"`
}

// answerLimit bounds how long a command waits for a server that has taken its
// question and says nothing. It is above the wait of a write (query.wait, 30 s), so
// that the server answers first.
const answerLimit = 45 * time.Second

// Invocation is one call of the program. Its methods load the configuration, run
// processes, and open what the configuration names.
type Invocation struct {
	ctx   context.Context //nolint:containedctx // an invocation is one call, and lives as long
	term  terminal.Terminal
	flags Flags
}

// NewInvocation returns a call that ends when ctx does.
func NewInvocation(ctx context.Context, term terminal.Terminal, flags Flags) *Invocation {
	return &Invocation{ctx: ctx, term: term, flags: flags}
}

// Terminal is what the command reads and writes.
func (inv *Invocation) Terminal() terminal.Terminal { return inv.term }

// Flags are those that the user gave, or their defaults.
func (inv *Invocation) Flags() Flags { return inv.flags }

// InJSON returns the same call with answers in JSON.
func (inv *Invocation) InJSON() *Invocation {
	out := *inv
	out.flags.JSON = true
	return &out
}

// Project is the tenant that the command concerns.
func (inv *Invocation) Project() string { return cmp.Or(inv.flags.Project, scope.DefaultProject) }

// Context ends when the user stops the command.
func (inv *Invocation) Context() context.Context { return inv.ctx }

// Client talks to the server that the flags or the configuration name, about the
// project that they name. Where they name none, it is that of the API key.
func (inv *Invocation) Client() (*client.Client, error) { return inv.ClientOf(inv.asked()) }

// asked is the project that requests name; empty leaves it to the API key.
func (inv *Invocation) asked() string {
	if key, err := inv.apiKey(); err == nil && key != "" {
		return inv.flags.Project
	}
	return inv.Project()
}

// ClientOf is Client for a project; for all of them if it is empty.
func (inv *Invocation) ClientOf(project string) (*client.Client, error) {
	return inv.clientThrough(project, answering())
}

// answering is a transport that gives up a server that does not answer.
func answering() http.RoundTripper {
	transport := http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert // it is one
	transport.ResponseHeaderTimeout = answerLimit
	return transport
}

func (inv *Invocation) clientThrough(project string, transport http.RoundTripper) (*client.Client, error) {
	server, err := inv.server()
	if err != nil {
		return nil, err
	}
	key, err := inv.apiKey()
	if err != nil {
		return nil, err
	}
	return client.New(server, client.Project(project), client.HTTP(&http.Client{Transport: transport}), client.APIKey(key))
}

// server is the address of the HTTP server that the flags or the configuration name.
func (inv *Invocation) server() (string, error) {
	server := inv.flags.Server
	if server == "" {
		c, _, err := inv.Configuration(nil)
		if err != nil {
			return "", err
		}
		server = "http://" + c.HTTP.Listen
	}
	if !strings.Contains(server, "://") {
		server = "http://" + server
	}
	return server, nil
}

// apiKeyVariable holds the API key of commands. It is no setting, so that no
// configuration file holds a key and no print shows one.
const apiKeyVariable = "PALIMPSEST_API_KEY" //nolint:gosec // a name

// apiKey is the key that the user gave; empty for none.
func (inv *Invocation) apiKey() (string, error) {
	if path := inv.flags.APIKeyFile; path != "" {
		text, err := os.ReadFile(path)
		if err != nil {
			return "", fmt.Errorf("read the API key: %w", err)
		}
		return strings.TrimSpace(string(text)), nil
	}
	for _, line := range inv.term.Environ {
		if key, ok := strings.CutPrefix(line, apiKeyVariable+"="); ok {
			return strings.TrimSpace(key), nil
		}
	}
	return "", nil
}

// Keys are the API keys on the broker of the Palimpsest whose data directory is
// data, or on the configured one. It takes the credential of the owner.
func (inv *Invocation) Keys(data string, do func(*auth.Keys) error) error {
	return inv.withBroker(data, func(js jetstream.JetStream, _ topology.Declaration) error {
		return do(auth.NewKeys(bucket.New(js), time.Now))
	})
}

// Print writes v as JSON if the user asks for it, and calls human if not.
func (inv *Invocation) Print(v any, human func(io.Writer)) error {
	if !inv.flags.JSON {
		human(inv.term.Screen())
		return nil
	}
	enc := json.NewEncoder(inv.term.Out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

const (
	// connectLimit bounds how long a command tries to reach the broker.
	connectLimit = 10 * time.Second
	// publishRetry is the pause between two attempts of a publisher to reach a
	// server that it lost.
	publishRetry = 250 * time.Millisecond
)

// Publisher connects to the broker at url, or to the configured one if url is
// empty. The connection reconnects without end. The caller closes it.
func (inv *Invocation) Publisher(url string, options ...jetstream.JetStreamOpt) (*nats.Conn, jetstream.JetStream, error) {
	conn, err := inv.publisher(url)
	if err != nil {
		return nil, nil, err
	}
	js, err := broker.NewJetStream(conn, options...)
	if err != nil {
		conn.Close()
		return nil, nil, err
	}
	return conn, js, nil
}

func (inv *Invocation) publisher(url string) (*nats.Conn, error) {
	if url == "" {
		cfg, _, err := inv.Configuration(nil)
		if err != nil {
			return nil, err
		}
		if cfg.NATS.URL != natsEmbedded {
			return inv.brokerOf(cfg)
		}
		url = "nats://" + cfg.NATS.Listen
	}
	conn, err := nats.Connect(url, nats.Name("palimpsest publish"), nats.Timeout(5*time.Second),
		nats.MaxReconnects(-1), nats.ReconnectWait(publishRetry), nats.ReconnectBufSize(-1))
	if err != nil {
		return nil, fmt.Errorf("reach NATS at %s (is Palimpsest running?): %w", config.MaskURL(url), broker.Unreached(inv.ctx, url, err))
	}
	return conn, nil
}

// brokerOf connects with the owner's credential to the broker that the
// configuration names.
func (inv *Invocation) brokerOf(cfg *Config) (*nats.Conn, error) {
	to := cfg.connection("palimpsest")
	if cfg.NATS.URL == natsEmbedded {
		var err error
		if to, err = broker.Endpoint(cfg.dataPath(natsDir)); err != nil {
			return nil, &userError{fmt.Sprintf(
				"data: no Palimpsest runs on %s: name its directory with --data, or a NATS of your own by nats.url (%v)", cfg.Data, Reason(err)), err}
		}
	}
	ctx, cancel := context.WithTimeout(inv.ctx, connectLimit)
	defer cancel()
	conn, err := broker.Connect(ctx, to)
	if err != nil && cfg.NATS.URL != natsEmbedded {
		return nil, plain(*cfg, &engineError{"nats.url", broker.Unreached(ctx, cfg.NATS.URL, err)})
	}
	return conn, err
}

// ApplyTopology creates and updates the streams and consumers of the broker, that of
// the Palimpsest whose data directory is data, or the configured one.
func (inv *Invocation) ApplyTopology(data string) error {
	return inv.withBroker(data, func(js jetstream.JetStream, decl topology.Declaration) error {
		return topology.Apply(inv.ctx, js, decl)
	})
}

// DiffTopology compares the streams and consumers of the broker with the declared
// ones.
func (inv *Invocation) DiffTopology(data string) (differences []topology.Difference, err error) {
	err = inv.withBroker(data, func(js jetstream.JetStream, decl topology.Declaration) error {
		differences, err = topology.Diff(inv.ctx, js, decl)
		return err
	})
	return differences, err
}

// withBroker calls do with the configured broker and the topology that it should
// have.
func (inv *Invocation) withBroker(data string, do func(jetstream.JetStream, topology.Declaration) error) error {
	cfg, _, err := inv.Configuration(map[string]string{"data": data})
	if err != nil {
		return err
	}
	conn, err := inv.brokerOf(cfg)
	if err != nil {
		return err
	}
	defer conn.Close()
	js, err := broker.NewJetStream(conn)
	if err != nil {
		return err
	}
	return do(js, topology.Declare(cfg.topology()))
}
