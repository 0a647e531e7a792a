// Package call is one call of the program: its flags, its terminal, and the client of
// the server.
package call

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

	"palimpsest/internal/background"
	"palimpsest/internal/terminal"
	"palimpsest/pkg/client"
	"palimpsest/pkg/scope"
)

// Flags are those of every command.
type Flags struct {
	ConfigFile string `name:"config" help:"Configuration file (YAML)." placeholder:"FILE"`
	JSON       bool   `name:"json" help:"Answer in JSON."`
	Server     string `name:"server" help:"HTTP address of a running Palimpsest; the configured one unless given." placeholder:"URL"`
	Project    string `name:"project" help:"Project; that of the API key, or \"default\", unless given." placeholder:"NAME"`
	APIKeyFile string `name:"api-key-file" help:"File that holds the API key; else PALIMPSEST_API_KEY is read." placeholder:"FILE"`
}

// answerLimit bounds how long a command waits for a server that has taken its
// question and says nothing. It is above the wait of a write (query.wait, 30 s), so
// that the server answers first.
const answerLimit = 45 * time.Second

// Call is one call of the program.
type Call struct {
	ctx    context.Context //nolint:containedctx // a call lives as long
	term   terminal.Terminal
	flags  Flags
	listen func() (string, error)
}

// New returns a call that ends when ctx does. listen returns the configured HTTP address.
func New(ctx context.Context, term terminal.Terminal, flags Flags, listen func() (string, error)) *Call {
	return &Call{ctx, term, flags, listen}
}

// Terminal is what the command reads and writes.
func (c *Call) Terminal() terminal.Terminal { return c.term }

// Flags are those that the user gave, or their defaults.
func (c *Call) Flags() Flags { return c.flags }

// Project is the tenant that the command concerns.
func (c *Call) Project() string { return cmp.Or(c.flags.Project, scope.DefaultProject) }

// Context ends when the user stops the command.
func (c *Call) Context() context.Context { return c.ctx }

// Print writes v as JSON if the user asks for it, and calls human if not.
func (c *Call) Print(v any, human func(io.Writer)) error {
	if !c.flags.JSON {
		human(c.term.Screen())
		return nil
	}
	enc := json.NewEncoder(c.term.Out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// Client talks to the server that the flags or the configuration name, about the
// project that they name. Where they name none, it is that of the API key.
func (c *Call) Client() (*client.Client, error) { return c.ClientOf(c.asked()) }

// Ready returns nil if the server is ready.
func (c *Call) Ready(ctx context.Context) error {
	cl, err := c.Client()
	if err == nil {
		_, err = cl.Ready(ctx)
	}
	return err
}

// asked is the project that requests name; empty leaves it to the API key.
func (c *Call) asked() string {
	if key, err := c.apiKey(); err == nil && key != "" {
		return c.flags.Project
	}
	return c.Project()
}

// ClientOf is Client for a project; for all of them if it is empty.
func (c *Call) ClientOf(project string) (*client.Client, error) {
	return c.clientThrough(project, answering())
}

// ClientOnceStarted is Client for a Palimpsest that need not run: if none answers, it
// starts one in the background, which goes on when this process ends. Its data directory
// is dir. Calls wait until it answers. failed is called if it cannot be started; calls
// then fail as usual.
func (c *Call) ClientOnceStarted(dir string, failed func(error)) (*client.Client, error) {
	args := []string{"up", "--data", dir}
	if c.flags.ConfigFile != "" {
		args = append(args, "--config", c.flags.ConfigFile)
	}
	started := make(chan struct{})
	go func() {
		defer close(started)
		err := background.Start(c.ctx, background.Program{Dir: dir, Args: args, Environ: c.term.Environ, Answers: c.answers})
		if err != nil && c.ctx.Err() == nil {
			failed(fmt.Errorf("start Palimpsest: %w", err))
		}
	}()
	return c.clientThrough(c.asked(), background.Await(started, answering()))
}

// answers reports whether the server answers.
func (c *Call) answers() bool {
	server, err := c.server()
	return err == nil && background.Answers(c.ctx, server+"/healthz")
}

// answering is a transport that gives up a server that does not answer.
func answering() http.RoundTripper {
	transport := http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert // it is one
	transport.ResponseHeaderTimeout = answerLimit
	return transport
}

func (c *Call) clientThrough(project string, transport http.RoundTripper) (*client.Client, error) {
	server, err := c.server()
	if err != nil {
		return nil, err
	}
	key, err := c.apiKey()
	if err != nil {
		return nil, err
	}
	return client.New(server, client.Project(project), client.HTTP(&http.Client{Transport: transport}), client.APIKey(key))
}

// server is the address of the HTTP server that the flags or the configuration name.
func (c *Call) server() (string, error) {
	server := c.flags.Server
	if server == "" {
		var err error
		if server, err = c.listen(); err != nil {
			return "", err
		}
	}
	if !strings.Contains(server, "://") {
		server = "http://" + server
	}
	return server, nil
}

// KeyVariable holds the API key of commands. It is no setting, so that no
// configuration file holds a key and no print shows one.
const KeyVariable = "PALIMPSEST_API_KEY"

// apiKey is the key that the user gave; empty for none.
func (c *Call) apiKey() (string, error) {
	if path := c.flags.APIKeyFile; path != "" {
		text, err := os.ReadFile(path)
		if err != nil {
			return "", fmt.Errorf("read the API key: %w", err)
		}
		key := strings.TrimSpace(string(text))
		if key == "" {
			return "", fmt.Errorf("read the API key: %s is empty", path)
		}
		return legible(key, path)
	}
	for _, line := range c.term.Environ {
		if key, ok := strings.CutPrefix(line, KeyVariable+"="); ok {
			return legible(strings.TrimSpace(key), KeyVariable)
		}
	}
	return "", nil
}

// legible refuses what no header can hold, such as two keys or a picture.
func legible(key, from string) (string, error) {
	if strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", fmt.Errorf("read the API key: %s holds more than one word of ASCII", from)
	}
	return key, nil
}
