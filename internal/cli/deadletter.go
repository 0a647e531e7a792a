package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"palimpsest/internal/app"
	"palimpsest/internal/terminal"
	"palimpsest/pkg/api"
	"palimpsest/pkg/client"
)

type deadletterCommand struct {
	List  letterListCommand  `cmd:"" help:"List refused messages, oldest first."`
	Show  letterShowCommand  `cmd:"" help:"Show one with its body."`
	Retry letterRetryCommand `cmd:"" help:"Retry one, or all that match."`
	Drop  letterDropCommand  `cmd:"" help:"Forget one, or all that match."`
}

// reach says whose letters a command sees.
type reach struct {
	Everywhere bool `help:"Dead letters of all projects, and of messages whose project could not be read."`
}

func (r reach) client(inv *app.Invocation) (*client.Client, error) {
	if r.Everywhere {
		return inv.ClientOf("")
	}
	return inv.Client()
}

// letterFilter narrows a command to some of the letters.
type letterFilter struct {
	Service string `help:"Only dead letters of this service." placeholder:"NAME"`
	Code    string `help:"Only dead letters with this error code." placeholder:"CODE"`
	User    string `help:"User." placeholder:"ID"`
}

func (f letterFilter) behind(after uint64, limit int) client.ListLetters {
	return client.ListLetters{Service: f.Service, Code: f.Code, User: f.User, After: after, Limit: limit}
}

type letterListCommand struct {
	reach
	letterFilter
	After uint64 `help:"Continue after this sequence."`
	Limit int    `help:"Dead letters at most." default:"100"`
}

// Run implements the command.
func (c *letterListCommand) Run(inv *app.Invocation) error {
	cl, err := c.client(inv)
	if err != nil {
		return err
	}
	page, err := cl.DeadLetters(inv.Context(), c.behind(c.After, c.Limit))
	if err != nil {
		return err
	}
	return inv.Print(page, func(w io.Writer) {
		t := terminal.NewTable(w, "SEQ", "SERVICE", "CODE", "FIELD", "REASON", "BURIED")
		for _, l := range page.Letters {
			t.Row(l.Sequence, l.Service, l.Code, l.Field, l.Reason, l.BuriedAt.Format(time.RFC3339))
		}
		t.Flush()
	})
}

type letterShowCommand struct {
	reach
	Sequence uint64 `arg:"" help:"Sequence of the dead letter."`
}

// Run implements the command.
func (c *letterShowCommand) Run(inv *app.Invocation) error {
	cl, err := c.client(inv)
	if err != nil {
		return err
	}
	l, err := cl.DeadLetter(inv.Context(), c.Sequence)
	if err != nil {
		return err
	}
	return inv.Print(l, func(w io.Writer) {
		_, _ = fmt.Fprintf(w, "%s %s: %s: %s\non %s (%s %d), attempt %d, %d bytes, sha256 %s\n%s\n",
			l.Service, l.Code, l.Field, l.Reason, l.Subject, l.Stream, l.MessageAt, l.Attempts, l.Size, l.SHA256, l.Data)
	})
}

// letterCommand is what one letter, or all that match, are given.
type letterCommand struct {
	reach
	letterFilter
	Sequence uint64 `arg:"" optional:"" help:"Sequence of the dead letter."`
	All      bool   `help:"All dead letters that the other flags select."`
}

// Validate implements kong's hook.
func (c *letterCommand) Validate() error {
	switch narrowed := c.letterFilter != (letterFilter{}); {
	case c.All && c.Sequence != 0:
		return errors.New("a sequence and --all exclude each other")
	case !c.All && c.Sequence == 0:
		return errors.New("name a dead letter by its sequence, or use --all")
	case !c.All && narrowed:
		return errors.New("--service, --code and --user go with --all")
	}
	return nil
}

// each settles the letters that the command names. Those that come while it runs,
// such as one that is retried in vain, are none of them.
func (c *letterCommand) each(inv *app.Invocation, settle func(*client.Client, context.Context, uint64) (api.Settled, error)) error {
	cl, err := c.client(inv)
	if err != nil {
		return err
	}
	if !c.All {
		s, err := settle(cl, inv.Context(), c.Sequence)
		if err != nil {
			return err
		}
		return inv.Print(s, func(w io.Writer) { told(w, s) })
	}
	sequences, err := c.matching(inv.Context(), cl)
	if err != nil {
		return err
	}
	done, left := []api.Settled{}, 0
	for _, sequence := range sequences {
		s, err := settle(cl, inv.Context(), sequence)
		if inv.Context().Err() != nil {
			return inv.Context().Err()
		}
		if err != nil {
			left++
			_, _ = fmt.Fprintf(inv.Terminal().Err, "letter %d: %v\n", sequence, err)
			continue
		}
		done = append(done, s)
	}
	err = inv.Print(done, func(w io.Writer) {
		for _, s := range done {
			told(w, s)
		}
	})
	if err == nil && left > 0 {
		return fmt.Errorf("%d of %d dead letters were not changed", left, len(sequences))
	}
	return err
}

// matching lists the letters before any is touched.
func (c *letterCommand) matching(ctx context.Context, cl *client.Client) ([]uint64, error) {
	const pageSize = 1000
	var out []uint64
	for after := uint64(0); ; {
		page, err := cl.DeadLetters(ctx, c.behind(after, pageSize))
		if err != nil {
			return nil, err
		}
		for _, l := range page.Letters {
			out = append(out, l.Sequence)
		}
		if after = page.Next; after == 0 {
			return out, nil
		}
	}
}

func told(w io.Writer, s api.Settled) { _, _ = fmt.Fprintf(w, "%s %d\n", s.Action, s.Sequence) }

type letterRetryCommand struct{ letterCommand }

// Run implements the command.
func (c *letterRetryCommand) Run(inv *app.Invocation) error {
	return c.each(inv, (*client.Client).RetryDeadLetter)
}

type letterDropCommand struct{ letterCommand }

// Run implements the command.
func (c *letterDropCommand) Run(inv *app.Invocation) error {
	return c.each(inv, (*client.Client).DropDeadLetter)
}
