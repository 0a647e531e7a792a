package cli

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/alecthomas/kong"

	"palimpsest/internal/app"
	"palimpsest/internal/version"
)

type manCommand struct {
	Dir string `arg:"" optional:"" help:"Directory for one page per command; palimpsest(1) is printed unless given." placeholder:"DIR"`
}

// Run implements the command.
func (c *manCommand) Run(inv *app.Invocation, parsed *kong.Context) error {
	root := parsed.Model.Node
	pages := map[string]string{root.Name + ".1": page(root, root)}
	for _, n := range visible(root.Children) {
		pages[root.Name+"-"+n.Name+".1"] = page(root, n)
	}
	if c.Dir == "" {
		return inv.Print(pages, func(w io.Writer) { _, _ = io.WriteString(w, pages[root.Name+".1"]) })
	}
	if err := os.MkdirAll(c.Dir, 0o755); err != nil { //nolint:gosec // everybody may read a manual
		return fmt.Errorf("write manual pages: %w", err)
	}
	for name, text := range pages {
		if err := os.WriteFile(filepath.Join(c.Dir, name), []byte(text), 0o644); err != nil { //nolint:gosec // as above
			return fmt.Errorf("write manual pages: %w", err)
		}
	}
	return inv.Print(map[string]int{"pages": len(pages)}, func(w io.Writer) { _, _ = fmt.Fprintln(w, len(pages), "pages") })
}

// page is the manual page of the program or of one of its commands, in the macros of
// man(7).
func page(root, n *kong.Node) string {
	name := root.Name
	if n != root {
		name += "-" + n.Name
	}
	var b manual
	b.line(".TH", strings.ToUpper(name), "1", "", "Palimpsest "+version.String(), "Palimpsest")
	b.line(".SH", "NAME")
	b.text(name + " - " + strings.TrimSuffix(n.Help, "."))
	b.line(".SH", "SYNOPSIS")
	if n == root {
		b.text(root.Name + " COMMAND [flags]")
		b.commands(root, "COMMANDS")
		b.flags("OPTIONS", n.Flags)
		b.ending()
		return b.String()
	}
	for _, leaf := range leaves(n) {
		b.text(root.Name + " " + strings.TrimSpace(leaf.Path()+" "+arguments(leaf)) + " [flags]")
		b.line(".br")
	}
	b.line(".SH", "DESCRIPTION")
	b.text(n.Help)
	b.described(n)
	for _, child := range visible(n.Children) {
		b.line(".SH", strings.ToUpper(child.Path()))
		b.text(child.Help)
		b.described(child)
	}
	b.line(".SH", "SEE ALSO")
	b.text(root.Name + "(1) lists the flags of all commands, and the exit codes.")
	return b.String()
}

// manual is the source of a page.
type manual struct{ strings.Builder }

// line writes a macro with its arguments.
func (b *manual) line(macro string, arguments ...string) {
	_, _ = b.WriteString(macro)
	for _, a := range arguments {
		_, _ = b.WriteString(` "` + strings.ReplaceAll(escaped(a), `"`, `\(dq`) + `"`)
	}
	_ = b.WriteByte('\n')
}

// text writes a paragraph. A line that begins with a dot or a quote would be a macro.
func (b *manual) text(s string) {
	if strings.HasPrefix(s, ".") || strings.HasPrefix(s, "'") {
		_, _ = b.WriteString(`\&`)
	}
	_, _ = b.WriteString(escaped(s) + "\n")
}

func (b *manual) entry(term, help string) {
	b.line(".TP")
	b.line(".B", term)
	b.text(help)
}

func (b *manual) commands(root *kong.Node, title string) {
	b.line(".SH", title)
	for _, n := range visible(root.Children) {
		b.entry(root.Name+"-"+n.Name+"(1)", n.Help)
	}
}

// described writes the arguments and flags of a command.
func (b *manual) described(n *kong.Node) {
	if len(n.Positional) > 0 {
		b.line(".SS", "Arguments")
		for _, p := range n.Positional {
			b.entry(p.Summary(), p.Help)
		}
	}
	b.flags("Flags", n.Flags)
}

func (b *manual) flags(title string, flags []*kong.Flag) {
	headed := false
	for _, f := range flags {
		if f.Hidden {
			continue
		}
		if !headed {
			b.line(".SS", title)
			headed = true
		}
		term := "--" + f.Name
		if f.Short != 0 {
			term = fmt.Sprintf("-%c, %s", f.Short, term)
		}
		if !f.IsBool() && !f.IsCounter() {
			term += "=" + f.FormatPlaceHolder()
		}
		b.entry(term, f.Help)
	}
}

func (b *manual) ending() {
	b.line(".SH", "EXIT STATUS")
	for _, code := range []struct{ term, help string }{
		{"0", "success"}, {"1", "failure"}, {"2", "wrong usage"}, {"3", "another process uses the data directory"}, {"130", "ended by a second signal"},
	} {
		b.entry(code.term, code.help)
	}
	b.line(".SH", "FILES")
	b.entry("palimpsest.yaml", "the configuration of the current directory, unless --config names another")
	b.entry("palimpsest-data", "the data directory, unless the configuration names another")
}

func escaped(s string) string {
	return strings.NewReplacer(`\`, `\e`, "-", `\-`, "\n", " ").Replace(s)
}

func visible(nodes []*kong.Node) (all []*kong.Node) {
	for _, n := range nodes {
		if !n.Hidden {
			all = append(all, n)
		}
	}
	return all
}

// leaves lists the commands that can be called: n itself, or those below it.
func leaves(n *kong.Node) (all []*kong.Node) {
	children := visible(n.Children)
	for _, child := range children {
		all = append(all, leaves(child)...)
	}
	if len(children) == 0 {
		all = append(all, n)
	}
	return all
}

func arguments(n *kong.Node) string {
	var words []string
	for _, p := range n.Positional {
		words = append(words, p.Summary())
	}
	return strings.Join(words, " ")
}
