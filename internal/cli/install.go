package cli

import (
	"fmt"
	"io"
	"os"
	"os/user"
	"path/filepath"

	"palimpsest/internal/app"
	"palimpsest/internal/assistant"
)

type installCommand struct {
	Assistant string `arg:"" help:"${assistants}." enum:"${assistants}"`
	User      string `help:"User of the memory; the name of this account unless given." placeholder:"ID"`
	Undo      bool   `help:"Remove the installation."`
	Yes       bool   `help:"Do not ask for confirmation."`
}

// installed is the answer in JSON.
type installed struct {
	Files []string `json:"files"`
	Note  string   `json:"note,omitempty"`
}

// Run implements the command: it shows the changes, asks, and makes them.
func (c *installCommand) Run(inv *app.Invocation) error {
	plan, err := c.plan(inv)
	if err != nil {
		return err
	}
	if len(plan.Changes) == 0 {
		return inv.Print(installed{Files: []string{}}, func(w io.Writer) { _, _ = fmt.Fprintln(w, "nothing to change") })
	}
	_, _ = fmt.Fprint(inv.Terminal().Err, plan.Diff())
	if !c.Yes {
		if err := confirmed(inv.Context(), inv.Terminal(), "Write these changes?"); err != nil {
			return err
		}
	}
	if err := plan.Apply(); err != nil {
		return err
	}
	out := installed{Files: []string{}}
	for _, change := range plan.Changes {
		out.Files = append(out.Files, change.File)
	}
	if !c.Undo {
		out.Note = plan.Note
	}
	return inv.Print(out, func(w io.Writer) {
		for _, file := range out.Files {
			_, _ = fmt.Fprintln(w, "changed "+file)
		}
		if out.Note != "" {
			_, _ = fmt.Fprintln(w, out.Note)
		}
	})
}

func (c *installCommand) plan(inv *app.Invocation) (assistant.Plan, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		return assistant.Plan{}, err
	}
	call, err := c.call(inv)
	if err != nil {
		return assistant.Plan{}, err
	}
	return assistant.New(c.Assistant, call, c.Undo, home, os.Getenv)
}

// call is how the assistant starts this program: with the flags of this call.
func (c *installCommand) call(inv *app.Invocation) (call assistant.Call, err error) {
	if call.Program, err = os.Executable(); err != nil {
		return call, err
	}
	if call.User = c.User; call.User == "" {
		account, err := user.Current()
		if err != nil {
			return call, fmt.Errorf("name the user with --user: %w", err)
		}
		call.User = account.Username
	}
	flags := inv.Flags()
	for _, f := range []struct{ flag, file string }{{"--config", flags.ConfigFile}, {"--api-key-file", flags.APIKeyFile}} {
		if f.file == "" {
			continue
		}
		file, err := filepath.Abs(f.file)
		if err != nil {
			return call, err
		}
		call.Flags = append(call.Flags, f.flag, file)
	}
	if flags.Server != "" {
		call.Flags = append(call.Flags, "--server", flags.Server)
	}
	if flags.Project != "" {
		call.Flags = append(call.Flags, "--project", flags.Project)
	}
	return call, nil
}
