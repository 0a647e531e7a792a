package cli

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"palimpsest/internal/app"
	"palimpsest/internal/auth"
	"palimpsest/internal/terminal"
)

type keysCommand struct {
	Data string `help:"Data directory of the running Palimpsest." placeholder:"DIR"`

	Create keysCreateCommand `cmd:"" help:"Make a key and print it once."`
	List   keysListCommand   `cmd:"" help:"List the keys, with their last use."`
	Revoke keysRevokeCommand `cmd:"" help:"Revoke a key."`
	Rotate keysRotateCommand `cmd:"" help:"Give a key a new secret and print it once."`
}

type keysCreateCommand struct {
	Name        string        `help:"Purpose of the key." placeholder:"TEXT"`
	Role        string        `help:"reader, writer, operator or admin; each has the permissions of those before it." enum:"reader,writer,operator,admin" default:"writer"`
	User        []string      `help:"User of the key; may be repeated; all users unless given." placeholder:"ID" sep:"none"`
	AllProjects bool          `help:"A key for all projects; for operators and admins."`
	Expires     time.Duration `help:"How long the key is valid; for ever unless given." placeholder:"DURATION"`
	Rate        float64       `help:"Requests per second." placeholder:"N"`
	Burst       int           `help:"Requests that may come at once." placeholder:"N"`
	Daily       int64         `help:"Requests per day, from midnight UTC." placeholder:"N"`
	MaxBody     int64         `help:"Largest request body, in bytes." placeholder:"BYTES"`
}

// made is the answer to a command that makes a secret.
type made struct {
	Key auth.Used `json:"key"`
	// Token is what callers present.
	Token string `json:"token"`
}

// Run implements the command.
func (c *keysCreateCommand) Run(inv *app.Invocation, of *keysCommand) error {
	role, err := auth.ParseRole(c.Role)
	if err != nil {
		return err
	}
	key := auth.Key{
		Name: c.Name, Project: inv.Project(), Role: role, Users: c.User,
		Limits: auth.Limits{Rate: c.Rate, Burst: c.Burst, Daily: c.Daily, MaxBody: c.MaxBody},
	}
	if c.AllProjects {
		key.Project = ""
	}
	if c.Expires < 0 {
		return fmt.Errorf("expires: %v is in the past", c.Expires)
	}
	if c.Expires > 0 {
		at := time.Now().Add(c.Expires).UTC()
		key.ExpiresAt = &at
	}
	return inv.Keys(of.Data, func(keys *auth.Keys) error {
		key, token, err := keys.Create(inv.Context(), key)
		if err != nil {
			return err
		}
		return printMade(inv, "created", key, token)
	})
}

// printMade prints the token alone to standard output, so that it can be
// redirected into a file, and its description to standard error.
func printMade(inv *app.Invocation, verb string, key auth.Key, token string) error {
	if !inv.Flags().JSON {
		_, _ = fmt.Fprintf(inv.Terminal().Err, "%s key %s: %s of %s. It is shown only once:\n", verb, key.ID, key.Role, reachOf(key))
	}
	return inv.Print(made{auth.Used{Key: key}.Public(), token}, func(io.Writer) { _, _ = fmt.Fprintln(inv.Terminal().Out, token) })
}

// reachOf names the data that a key reaches.
func reachOf(k auth.Key) string {
	if k.Project == "" {
		return "all projects"
	}
	text := "project " + k.Project
	if len(k.Users) > 0 {
		text += ", users " + strings.Join(k.Users, ", ")
	}
	return text
}

type keysListCommand struct {
	Revoked bool `help:"Revoked keys too."`
}

// Run implements the command.
func (c *keysListCommand) Run(inv *app.Invocation, of *keysCommand) error {
	return inv.Keys(of.Data, func(keys *auth.Keys) error {
		all, err := keys.List(inv.Context())
		if err != nil {
			return err
		}
		shown := []auth.Used{}
		for _, k := range all {
			if c.Revoked || k.RevokedAt == nil {
				shown = append(shown, k.Public())
			}
		}
		return inv.Print(shown, func(w io.Writer) { printKeys(w, shown, time.Now()) })
	})
}

func printKeys(w io.Writer, all []auth.Used, now time.Time) {
	t := terminal.NewTable(w, "ID", "NAME", "ROLE", "REACH", "CREATED", "LAST USE", "TODAY", "STATE")
	for _, k := range all {
		last, today := "never", int64(0)
		if !k.Use.Last.IsZero() {
			last, today = terminal.Ago(k.Use.Last, now), k.Use.On(now)
		}
		t.Row(k.ID, cmp.Or(k.Name, "-"), k.Role, reachOf(k.Key), terminal.Ago(k.CreatedAt, now), last, today, stateOf(k.Key, now))
	}
	t.Flush()
}

func stateOf(k auth.Key, now time.Time) string {
	switch {
	case k.RevokedAt != nil:
		return "revoked " + terminal.Ago(*k.RevokedAt, now)
	case k.ExpiresAt != nil && now.Before(*k.ExpiresAt):
		return "expires " + terminal.Ago(*k.ExpiresAt, now)
	case k.ExpiresAt != nil:
		return "expired " + terminal.Ago(*k.ExpiresAt, now)
	}
	return "valid"
}

type keysRevokeCommand struct {
	ID string `arg:"" help:"Id of the key."`
}

// Run implements the command.
func (c *keysRevokeCommand) Run(inv *app.Invocation, of *keysCommand) error {
	return inv.Keys(of.Data, func(keys *auth.Keys) error {
		key, err := keys.Revoke(inv.Context(), c.ID)
		if err != nil {
			return err
		}
		return inv.Print(auth.Used{Key: key}.Public(), func(w io.Writer) { _, _ = fmt.Fprintf(w, "revoked %s\n", key.ID) })
	})
}

type keysRotateCommand struct {
	ID    string        `arg:"" help:"Id of the key."`
	Grace time.Duration `help:"How long the previous secret is accepted too." default:"0s" placeholder:"DURATION"`
}

// Run implements the command.
func (c *keysRotateCommand) Run(inv *app.Invocation, of *keysCommand) error {
	if c.Grace < 0 {
		return fmt.Errorf("grace: %v is negative", c.Grace)
	}
	return inv.Keys(of.Data, func(keys *auth.Keys) error {
		key, token, err := keys.Rotate(inv.Context(), c.ID, c.Grace)
		if err != nil {
			return err
		}
		return printMade(inv, "rotated", key, token)
	})
}
