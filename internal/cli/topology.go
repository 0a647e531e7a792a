package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"palimpsest/internal/app"
	"palimpsest/internal/topology"
)

type topologyCommand struct {
	Data string `help:"Data directory of the running Palimpsest." placeholder:"DIR"`

	Show  topologyShowCommand  `cmd:"" help:"Show the streams and consumers as declared."`
	Apply topologyApplyCommand `cmd:"" help:"Create and update the streams and consumers."`
	Diff  topologyDiffCommand  `cmd:"" help:"Compare the declared streams and consumers with those of the broker."`

	Permissions topologyPermissionsCommand `cmd:"" help:"Print the permissions of each service on a NATS server."`
	Accounts    topologyAccountsCommand    `cmd:"" help:"Print the accounts of a NATS server: services, and publishers of projects."`
}

type topologyShowCommand struct{}

// Run implements the command.
func (c *topologyShowCommand) Run(inv *app.Invocation) error {
	decl := topology.Declare(topology.Config{})
	return inv.Print(decl, func(w io.Writer) {
		for _, s := range decl.Streams {
			_, _ = fmt.Fprintf(w, "%s  %v  %s\n", s.Config.Name, s.Config.Subjects, s.Config.Retention)
			for _, consumer := range s.Consumers {
				filters := append([]string{}, consumer.FilterSubjects...)
				if consumer.FilterSubject != "" {
					filters = append(filters, consumer.FilterSubject)
				}
				_, _ = fmt.Fprintf(w, "  %s  %s\n", consumer.Durable, strings.Join(filters, " "))
			}
		}
	})
}

type topologyPermissionsCommand struct{}

// Run implements the command.
func (c *topologyPermissionsCommand) Run(inv *app.Invocation) error {
	all := topology.Declare(topology.Config{}).ServicePermissions()
	return inv.Print(all, func(w io.Writer) { _, _ = io.WriteString(w, topology.ServerText(all)) })
}

type topologyAccountsCommand struct {
	Publisher []string `help:"A project whose publisher may publish its episodes and nothing else; may be repeated." placeholder:"PROJECT" sep:"none"`
}

// Run implements the command.
func (c *topologyAccountsCommand) Run(inv *app.Invocation) error {
	text, err := topology.Declare(topology.Config{}).AccountsText(c.Publisher...)
	if err != nil {
		return err
	}
	return inv.Print(map[string]string{"accounts": text}, func(w io.Writer) { _, _ = io.WriteString(w, text) })
}

type topologyApplyCommand struct {
	Accounts  string   `help:"Write accounts.conf and permissions.conf for a NATS server into a directory first; the server takes them at its next reload." placeholder:"DIR"`
	Publisher []string `help:"With --accounts: a project whose publisher may publish its episodes and nothing else; may be repeated." placeholder:"PROJECT" sep:"none"`
}

// Run implements the command.
func (c *topologyApplyCommand) Run(inv *app.Invocation, of *topologyCommand) error {
	if c.Accounts == "" && len(c.Publisher) > 0 {
		return errors.New("--publisher needs --accounts, which names the directory of the files")
	}
	if c.Accounts != "" {
		if err := topology.Declare(topology.Config{}).WriteServer(c.Accounts, c.Publisher...); err != nil {
			return err
		}
	}
	err := inv.Broker(of.Data, func(js jetstream.JetStream, declared topology.Declaration) error {
		return topology.Apply(inv.Context(), js, declared)
	})
	if err != nil {
		return err
	}
	return inv.Print(map[string]bool{"applied": true}, func(w io.Writer) { _, _ = fmt.Fprintln(w, "applied") })
}

type topologyDiffCommand struct{}

// Run implements the command. A difference is an error.
func (c *topologyDiffCommand) Run(inv *app.Invocation, of *topologyCommand) error {
	var differences []topology.Difference
	err := inv.Broker(of.Data, func(js jetstream.JetStream, declared topology.Declaration) (err error) {
		differences, err = topology.Diff(inv.Context(), js, declared)
		return err
	})
	if err != nil {
		return err
	}
	err = inv.Print(differences, func(w io.Writer) {
		for _, d := range differences {
			_, _ = fmt.Fprintln(w, d)
		}
		if len(differences) == 0 {
			_, _ = fmt.Fprintln(w, "no difference")
		}
	})
	if err == nil && len(differences) > 0 {
		return errors.New("the broker's topology differs from the declared")
	}
	return err
}
