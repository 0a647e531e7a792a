package app

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"palimpsest/internal/broker"
	"palimpsest/internal/topology"
)

type topologyCommand struct {
	Data string `help:"Data directory of the running Palimpsest." placeholder:"DIR"`

	Show  topologyShowCommand  `cmd:"" help:"Show the streams and consumers as declared."`
	Apply topologyApplyCommand `cmd:"" help:"Create and update them."`
	Diff  topologyDiffCommand  `cmd:"" help:"Compare the declared with what the broker has."`

	Permissions topologyPermissionsCommand `cmd:"" help:"Print what a NATS server should let each service do."`
}

type topologyShowCommand struct{}

// Run implements the command.
func (c *topologyShowCommand) Run(inv *invocation) error {
	decl := topology.Declare(topology.Config{})
	return inv.print(decl, func(w io.Writer) {
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
func (c *topologyPermissionsCommand) Run(inv *invocation) error {
	all := topology.Declare(topology.Config{}).ServicePermissions()
	return inv.print(all, func(w io.Writer) { _, _ = io.WriteString(w, topology.ServerText(all)) })
}

type topologyApplyCommand struct{}

// Run implements the command.
func (c *topologyApplyCommand) Run(inv *invocation) error {
	return inv.withBroker(func(js jetstream.JetStream, decl topology.Declaration) error {
		if err := topology.Apply(inv.ctx, js, decl); err != nil {
			return err
		}
		return inv.print(map[string]bool{"applied": true}, func(w io.Writer) { _, _ = fmt.Fprintln(w, "applied") })
	})
}

type topologyDiffCommand struct{}

// Run implements the command. A difference is an error.
func (c *topologyDiffCommand) Run(inv *invocation) error {
	return inv.withBroker(func(js jetstream.JetStream, decl topology.Declaration) error {
		differences, err := topology.Diff(inv.ctx, js, decl)
		if err != nil {
			return err
		}
		err = inv.print(differences, func(w io.Writer) {
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
	})
}

// withBroker hands over the broker that is configured, and the topology that it
// should have.
func (inv *invocation) withBroker(do func(jetstream.JetStream, topology.Declaration) error) error {
	cfg, _, err := inv.configuration(map[string]string{"data": inv.line.Topology.Data})
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

func (c *Config) dataPath(name string) string { return filepath.Join(c.Data, name) }
