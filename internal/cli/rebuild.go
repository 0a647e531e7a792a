package cli

import (
	"errors"
	"fmt"
	"io"

	"palimpsest/internal/app"
	"palimpsest/internal/engine"
	"palimpsest/internal/recovery"
)

type rebuildCommand struct {
	Data  string `help:"Data directory of a stopped Palimpsest, if its streams or its memory are files; ./palimpsest-data unless configured." placeholder:"DIR"`
	Check bool   `help:"Only compare: the memory store stays as it is, and digests that differ are an error."`

	AcceptLoss uint64 `help:"Replace the memory store although the new one has up to N episodes and facts fewer." placeholder:"N"`
}

// Run implements the command. With --check, digests that differ are an error.
func (c *rebuildCommand) Run(inv *app.Invocation) error {
	out, err := inv.Rebuild(c.Data, recovery.Mode{Check: c.Check, Accept: c.AcceptLoss})
	if engine.InUse(err) {
		err = fmt.Errorf("%w: stop Palimpsest before its memory store is rebuilt", err)
	}
	if err != nil {
		return err
	}
	err = inv.Print(out, func(w io.Writer) { tellRebuilt(w, out) })
	if err == nil && c.Check && !out.Same() {
		return errors.New("the memory store differs from the one rebuilt from the streams")
	}
	return err
}

func tellRebuilt(w io.Writer, r recovery.Rebuilt) {
	live := r.Live
	if live == "" {
		live = "unreadable: " + r.LiveError
	}
	_, _ = fmt.Fprintf(w, "live     %s\nrebuilt  %s\n%d episodes, %d effects, %d scopes\n", live, r.Rebuilt, r.Episodes, r.Effects, r.Scopes)
	if r.Moved > 0 {
		_, _ = fmt.Fprintf(w, "%d positions of the live store hold another episode than in the rebuilt one, or none\n", r.Moved)
	}
	if r.Unreadable > 0 {
		_, _ = fmt.Fprintf(w, "%d positions of the live store cannot be read\n", r.Unreadable)
	}
	if r.OnlyLive > 0 {
		_, _ = fmt.Fprintf(w, "%d episodes are only in the live store: EPISODES lacks them\n", r.OnlyLive)
	}
	if r.ScopesOnlyLive > 0 {
		_, _ = fmt.Fprintf(w, "%d scopes have effects that neither AUDIT nor the audit log has\n", r.ScopesOnlyLive)
	}
	if r.Lost.Total() > 0 {
		_, _ = fmt.Fprintf(w, "%d episodes and %d facts fewer than in the live store\n", r.Lost.Episodes, r.Lost.Facts)
	}
	if r.Switched {
		_, _ = fmt.Fprintln(w, "switched to the rebuilt store")
	}
	if r.Kept != "" {
		_, _ = fmt.Fprintf(w, "the previous store is kept as %s\n", r.Kept)
	}
}
