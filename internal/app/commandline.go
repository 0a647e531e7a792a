package app

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"palimpsest/internal/terminal"
	"palimpsest/pkg/client"
	"palimpsest/pkg/scope"
)

// commandLine is the grammar. Commands are in the order of the data flow.
type commandLine struct {
	ConfigFile string `name:"config" help:"Configuration file (YAML)." placeholder:"FILE"`
	JSON       bool   `name:"json" help:"Answer in JSON."`
	Server     string `name:"server" help:"HTTP address of a running Palimpsest; the configured one unless given." placeholder:"URL"`
	Project    string `name:"project" help:"Tenant." default:"default"`

	Up           upCommand      `cmd:"" help:"Run everything in one process."`
	Ingest       serviceCommand `cmd:"" help:"Run the ingest service alone."`
	Scheduler    serviceCommand `cmd:"" help:"Run the scheduler service alone."`
	Extractor    serviceCommand `cmd:"" help:"Run the extractor service alone."`
	Decider      serviceCommand `cmd:"" help:"Run the decider service alone."`
	Consolidator serviceCommand `cmd:"" help:"Run the consolidator service alone."`
	Query        serviceCommand `cmd:"" help:"Run the query service alone."`

	Publish    publishCommand    `cmd:"" help:"Publish what was said, from standard input: lines of text or JSON."`
	Replay     replayCommand     `cmd:"" help:"Replay the audit stream."`
	Ready      readyCommand      `cmd:"" help:"Ask a process how each thing that it needs is; 1 unless it is ready."`
	Ledger     ledgerCommand     `cmd:"" help:"Account for every episode."`
	Report     reportCommand     `cmd:"" help:"Count what memory did: deltas, churn, yield, latency, cost."`
	Deadletter deadletterCommand `cmd:"" help:"List, show, retry and drop refused messages."`
	Digest     digestCommand     `cmd:"" help:"Print the digest of all that is known."`
	Rebuild    rebuildCommand    `cmd:"" help:"Build the memory store of a stopped Palimpsest anew from its streams."`
	Chaos      chaosCommand      `cmd:"" help:"Kill a Palimpsest of its own again and again, and judge what it kept."`
	Topology   topologyCommand   `cmd:"" help:"Show, apply and compare the streams."`
	Config     configCommand     `cmd:"" help:"Print and check the configuration."`
	Bench      benchCommand      `cmd:"" help:"Measure what Palimpsest costs, against the bare engines."`
	BenchPeer  benchPeerCommand  `cmd:"" hidden:"" help:"Run what bench measures."`
	Version    versionCommand    `cmd:"" help:"Print the version."`
}

// answerLimit bounds how long a command waits for a server that has taken its
// question and says nothing. It is above the wait of a write (query.wait, 30 s), so
// that the server answers first.
const answerLimit = 45 * time.Second

// invocation is one call of the program.
type invocation struct {
	ctx  context.Context //nolint:containedctx // an invocation is one call, and lives as long
	term terminal.Terminal
	line *commandLine
}

// Whose narrows a read; a flag that is left out widens it.
type Whose struct {
	User    *string `help:"User; any unless given, \"\" for none." placeholder:"ID"`
	Agent   *string `help:"Agent; any unless given, \"\" for none." placeholder:"ID"`
	Session *string `help:"Session; any unless given, \"\" for none." placeholder:"ID"`

	AllUsers bool `help:"Read the whole project; needed where none of the three is named."`
}

// Selector returns the levels that the flags name. It refuses flags that the
// server would refuse, in terms of flags.
func (w Whose) Selector(project string) (scope.Selector, error) {
	sel := scope.Selector{Project: project, User: w.User, Agent: w.Agent, Session: w.Session, All: w.AllUsers}
	if named := w.User != nil || w.Agent != nil || w.Session != nil; named == w.AllUsers {
		return sel, errors.New("name --user, --agent or --session, or read the whole project with --all-users")
	}
	return sel, nil
}

// client talks to the server that the flags or the configuration name, about the
// project that they name.
func (inv *invocation) client() (*client.Client, error) { return inv.clientOf(inv.line.Project) }

// clientOf is client for a project; all where it is empty.
func (inv *invocation) clientOf(project string) (*client.Client, error) {
	server := inv.line.Server
	if server == "" {
		c, _, err := inv.configuration(nil)
		if err != nil {
			return nil, err
		}
		server = "http://" + c.HTTP.Listen
	}
	if !strings.Contains(server, "://") {
		server = "http://" + server
	}
	transport := http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert // it is one
	transport.ResponseHeaderTimeout = answerLimit
	return client.New(server, client.Project(project), client.HTTP(&http.Client{Transport: transport}))
}

// print writes v as JSON where that is asked for, else as human says.
func (inv *invocation) print(v any, human func(io.Writer)) error {
	if !inv.line.JSON {
		human(inv.term.Screen())
		return nil
	}
	enc := json.NewEncoder(inv.term.Out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}
