package app

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"time"

	"palimpsest/internal/terminal"
	"palimpsest/pkg/client"
)

// Flags are those of every command.
type Flags struct {
	ConfigFile string `name:"config" help:"Configuration file (YAML)." placeholder:"FILE"`
	JSON       bool   `name:"json" help:"Answer in JSON."`
	Server     string `name:"server" help:"HTTP address of a running Palimpsest; the configured one unless given." placeholder:"URL"`
	Project    string `name:"project" help:"Tenant." default:"default"`
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
func (inv *Invocation) Project() string { return inv.flags.Project }

// Context ends when the user stops the command.
func (inv *Invocation) Context() context.Context { return inv.ctx }

// Client talks to the server that the flags or the configuration name, about the
// project that they name.
func (inv *Invocation) Client() (*client.Client, error) { return inv.ClientOf(inv.flags.Project) }

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
	return client.New(server, client.Project(project), client.HTTP(&http.Client{Transport: transport}))
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
