package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"palimpsest/internal/app"
	"palimpsest/internal/engine"
	"palimpsest/internal/erasure"
	"palimpsest/internal/poll"
	"palimpsest/pkg/api"
	"palimpsest/pkg/client"
	"palimpsest/pkg/scope"
)

type eraseCommand struct {
	User   string `help:"The user to erase." placeholder:"ID"`
	Apply  string `help:"Erase the user of this receipt from a copy of the data directory that is older. Needs --data." placeholder:"RECEIPT"`
	Resume bool   `help:"Finish the erasures that were interrupted. Needs --data."`
	Data   string `help:"Data directory of a stopped Palimpsest; without it, a running one is asked." placeholder:"DIR"`
	Yes    bool   `help:"Do not ask for confirmation."`
}

// Run implements the command.
func (c *eraseCommand) Run(inv *app.Invocation) error {
	if err := c.check(); err != nil {
		return err
	}
	if c.User != "" && !c.Yes {
		known, err := c.known(inv)
		if err != nil {
			return err
		}
		question := fmt.Sprintf("User %q: %s. Remove everything for good? There is no way back", c.User, known)
		if err := confirmed(inv.Context(), inv.Terminal(), question); err != nil {
			return err
		}
	}
	var done []api.Receipt
	var err error
	if c.Data == "" {
		done, err = c.ask(inv)
	} else {
		done, err = c.erase(inv)
	}
	if err != nil {
		return err
	}
	if len(done) == 1 {
		return inv.Print(done[0], func(w io.Writer) { tellReceipt(w, done[0]) })
	}
	return inv.Print(done, func(w io.Writer) {
		if len(done) == 0 {
			_, _ = fmt.Fprintln(w, "There is nothing to finish.")
		}
		for _, r := range done {
			tellReceipt(w, r)
		}
	})
}

func (c *eraseCommand) check() error {
	named := 0
	for _, given := range []bool{c.User != "", c.Apply != "", c.Resume} {
		if given {
			named++
		}
	}
	switch {
	case named != 1:
		return errors.New("name --user, --apply or --resume")
	case c.Data == "" && c.User == "":
		return errors.New("name the data directory of a stopped Palimpsest with --data")
	}
	return nil
}

// known counts what a running Palimpsest knows of the user.
func (c *eraseCommand) known(inv *app.Invocation) (string, error) {
	if c.Data != "" {
		return "what is stored is counted when it is removed", nil
	}
	cl, err := inv.Client()
	if err != nil {
		return "", err
	}
	ledger, err := cl.Ledger(inv.Context(), scope.Selector{Project: inv.Project(), User: &c.User}, false)
	if err != nil {
		return "", err
	}
	episodes := uint64(0)
	for _, account := range ledger.Totals {
		episodes = max(episodes, account.Accepted)
	}
	if episodes == 0 {
		return "no episode is known, so check the spelling", nil
	}
	return fmt.Sprintf("episodes known: %d", episodes), nil
}

// erase works on the files of a stopped Palimpsest.
func (c *eraseCommand) erase(inv *app.Invocation) ([]api.Receipt, error) {
	var ask func(*erasure.Book, time.Time) error
	switch {
	case c.Apply != "":
		raw, err := os.ReadFile(c.Apply)
		if err != nil {
			return nil, err
		}
		receipt, err := erasure.Verify(raw, "")
		if err != nil {
			return nil, err
		}
		ask = func(book *erasure.Book, now time.Time) error {
			_, err := book.AskAgain(receipt, now)
			return err
		}
	case c.User != "":
		ask = func(book *erasure.Book, now time.Time) error {
			_, err := book.Ask(inv.Project(), c.User, "", now)
			return err
		}
	}
	done, err := inv.Erase(c.Data, ask)
	if engine.InUse(err) {
		err = fmt.Errorf("%w: stop Palimpsest, or ask it with --server", err)
	}
	return done, err
}

// askAgain is the pause between questions how far an erasure is.
const askAgain = 200 * time.Millisecond

// ask has a running Palimpsest erase, and waits for the receipt. The server is away
// meanwhile.
func (c *eraseCommand) ask(inv *app.Invocation) ([]api.Receipt, error) {
	cl, err := inv.Client()
	if err != nil {
		return nil, err
	}
	id, err := cl.Erase(inv.Context(), c.User)
	if err != nil {
		return nil, err
	}
	_, _ = fmt.Fprintf(inv.Terminal().Err, "Erasure %s; the server stops its services, erases, and starts them again.\n", id)
	r, err := awaitErasure(inv.Context(), cl, id)
	return []api.Receipt{r}, err
}

func awaitErasure(ctx context.Context, cl *client.Client, id string) (r api.Receipt, err error) {
	err = poll.Until(ctx, askAgain, func() (bool, error) {
		e, err := cl.Erasure(ctx, id)
		var refused *api.Problem
		switch {
		case err == nil && e.Receipt != nil:
			r = *e.Receipt
			return true, nil
		case errors.As(err, &refused) && refused.Status < 500:
			return true, err
		}
		return false, nil
	})
	return r, err
}

func tellReceipt(w io.Writer, r api.Receipt) {
	_, _ = fmt.Fprintf(w, "erased     %s\nproject    %s\nuser       %s (keyed hash)\nfinished   %s\n", r.ID, r.Project, r.Whom, r.FinishedAt.Format(time.RFC3339))
	if r.NothingFound {
		_, _ = fmt.Fprintln(w, "Nothing of this user was found: check the spelling.")
	}
	for _, p := range r.Places {
		if p.Removed == nil {
			continue // it holds no data
		}
		var counts []string
		for _, kind := range slices.Sorted(maps.Keys(p.Removed)) {
			counts = append(counts, fmt.Sprintf("%d %s", p.Removed[kind], kind))
		}
		if counts == nil {
			counts = []string{"nothing"}
		}
		_, _ = fmt.Fprintf(w, "%-10s %s removed, %d left\n", p.Name, strings.Join(counts, ", "), p.Left)
	}
	for _, p := range r.Places {
		for _, text := range p.Beyond {
			_, _ = fmt.Fprintf(w, "not reached: %s\n", text)
		}
	}
	for _, text := range r.Unreachable {
		_, _ = fmt.Fprintf(w, "not reached: %s\n", text)
	}
	_, _ = fmt.Fprintf(w, "signed by  %s\n", r.PublicKey)
}

type verifyReceiptCommand struct {
	File string `arg:"" help:"The receipt, in JSON."`
	Key  string `help:"The public key that must have signed it, in hex; any unless given." placeholder:"HEX"`
}

// Run implements the command.
func (c *verifyReceiptCommand) Run(inv *app.Invocation) error {
	raw, err := os.ReadFile(c.File)
	if err != nil {
		return err
	}
	r, err := erasure.Verify(raw, c.Key)
	if err != nil {
		return err
	}
	return inv.Print(r, func(w io.Writer) {
		tellReceipt(w, r)
		_, _ = fmt.Fprintln(w, "The receipt is genuine.")
	})
}
