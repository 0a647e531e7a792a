package cli

import (
	"github.com/alecthomas/kong"
	kongcompletion "github.com/jotaen/kong-completion"
)

// completionCommand prints the script of a shell. Without a shell, it tells how to
// activate completion in the one that the user logs in with.
type completionCommand struct {
	Shell string `arg:"" optional:"" help:"The shell: bash, zsh or fish; without it, how to activate completion in the login shell." enum:"bash,zsh,fish," default:""`
	Code  bool   `short:"c" hidden:"" help:"Print the script, as for a named shell."`
}

// Run prints it.
func (c *completionCommand) Run(parsed *kong.Context) error {
	library := kongcompletion.Completion{Shell: c.Shell, Code: c.Code || c.Shell != ""}
	return library.Run(parsed)
}
