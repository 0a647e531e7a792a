package cli

import (
	"errors"
	"fmt"
	"io"

	"palimpsest/internal/app"
	"palimpsest/internal/recovery"
)

type verifyCommand struct {
	Data string `help:"Data directory, if streams, memory or audit log are files; ./palimpsest-data unless configured." placeholder:"DIR"`
}

// errDiffers: the comparison found a difference.
var errDiffers = errors.New("store, streams and audit log differ")

// Run implements the command. A difference is an error.
func (c *verifyCommand) Run(inv *app.Invocation) (err error) {
	sources, done, err := inv.Sources(c.Data)
	if err != nil {
		return err
	}
	found, err := recovery.Verify(inv.Context(), sources)
	if err = errors.Join(err, done()); err != nil {
		return err
	}
	if err := inv.Print(found, func(w io.Writer) { tell(w, found) }); err != nil {
		return err
	}
	if !found.OK() {
		return errDiffers
	}
	return nil
}

func tell(w io.Writer, v recovery.Verified) {
	_, _ = fmt.Fprintf(w, "%d episodes in %d scopes, %d effects, %d rows in the audit log\n", v.Episodes, v.Scopes, v.Effects, v.Rows)
	if v.Dropped > 0 {
		_, _ = fmt.Fprintf(w, "%d episodes of the store are older than the first one of EPISODES\n", v.Dropped)
	}
	if v.OnlyStore > 0 {
		_, _ = fmt.Fprintf(w, "%d episodes are only in the store, where a rebuild kept them\n", v.OnlyStore)
	}
	for _, d := range v.Differences {
		_, _ = fmt.Fprintln(w, d)
	}
	if v.OK() {
		_, _ = fmt.Fprintln(w, "no difference")
	}
}
