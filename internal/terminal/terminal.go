// Package terminal formats output for people: tables, times and colours.
package terminal

import (
	"io"
	"os"
	"slices"
	"strings"

	"github.com/mattn/go-isatty"
)

// Terminal is what the command line reads and writes.
type Terminal struct {
	In       io.Reader
	Out, Err io.Writer
	Environ  []string // NAME=value
}

// Screen returns Out, with colours if Out is a terminal that shows them.
func (t Terminal) Screen() io.Writer {
	if Is(t.Out) && t.env("NO_COLOR") == "" && t.env("TERM") != "dumb" {
		return screen{t.Out}
	}
	return t.Out
}

// Interactive reports whether a person can be asked: In and Err are terminals.
func (t Terminal) Interactive() bool { return Is(t.In) && Is(t.Err) }

// env returns a variable; the last of a name counts.
func (t Terminal) env(name string) string {
	for _, v := range slices.Backward(t.Environ) {
		if value, ok := strings.CutPrefix(v, name+"="); ok {
			return value
		}
	}
	return ""
}

// Is reports whether a reader or writer is a terminal.
func Is(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && isatty.IsTerminal(f.Fd())
}

// screen is a writer whose reader sees colours.
type screen struct{ io.Writer }

// The styles of text on a screen, as parameters of the SGR control sequence
// (ECMA-48).
const (
	bold  = "1"
	faint = "2"
	red   = "31"
	green = "32"
)

// Bold returns text that stands out, where w shows colours.
func Bold(w io.Writer, text string) string { return styled(w, bold, text) }

// Good returns text in green, where w shows colours.
func Good(w io.Writer, text string) string { return styled(w, green, text) }

// Bad returns text in red, where w shows colours.
func Bad(w io.Writer, text string) string { return styled(w, red, text) }

func styled(w io.Writer, style, text string) string {
	if _, ok := w.(screen); !ok || text == "" {
		return text
	}
	return "\x1b[" + style + "m" + text + "\x1b[0m"
}
