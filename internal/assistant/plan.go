package assistant

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/aymanbagabas/go-udiff"
)

// Call is how the assistant starts this program.
type Call struct {
	// Program is its path, Flags come before each command.
	Program string
	Flags   []string
	// User is whose memory it is.
	User string
}

// Change is the new text of one file.
type Change struct {
	File string
	// Before and After are the texts; Exists tells an empty file from none. An empty
	// After removes the file.
	Before, After string
	Exists        bool
}

// Plan is what an installation changes.
type Plan struct {
	Changes []Change
	// Note tells the user what else to do.
	Note string
}

// New returns the plan to install the server and the hooks for the assistant of that
// name, or, if undo is set, to remove them. Files that stay as they are have no
// change. An unreadable file is an error.
func New(name string, call Call, undo bool, home string, env func(name string) string) (Plan, error) {
	a, known := named(name)
	if !known {
		return Plan{}, fmt.Errorf("no assistant is named %q; there are %s", name, strings.Join(Names(), ", "))
	}
	texts := texts{}
	edits := []edit{{a.serverFile(home, env), func(text string) (string, error) { return a.editServer(text, call, undo) }}}
	if a.hooks != "" {
		file := filepath.Join(a.directory(home, env), a.hooks)
		edits = append(edits, edit{file, func(text string) (string, error) { return a.editHooks(text, call, undo) }})
	}
	for _, e := range edits {
		if err := texts.edit(e); err != nil {
			return Plan{}, fmt.Errorf("edit %s: %w", e.file, err)
		}
	}
	plan := Plan{Note: a.note}
	for _, e := range edits {
		if c := texts[e.file]; c != nil && c.Before != c.After {
			plan.Changes = append(plan.Changes, *c)
			delete(texts, e.file) // two edits of a file are one change
		}
	}
	return plan, nil
}

// edit changes the text of a file.
type edit struct {
	file string
	do   func(text string) (string, error)
}

// texts are files by their names.
type texts map[string]*Change

func (t texts) edit(e edit) error {
	c := t[e.file]
	if c == nil {
		text, err := os.ReadFile(e.file)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		c = &Change{File: e.file, Before: string(text), After: string(text), Exists: err == nil}
		t[e.file] = c
	}
	after, err := e.do(c.After)
	if err != nil {
		return err
	}
	c.After = after
	return nil
}

// Diff shows the changes as a unified diff.
func (p Plan) Diff() string {
	var b strings.Builder
	for _, c := range p.Changes {
		before, after := c.File, c.File
		if !c.Exists {
			before = os.DevNull
		}
		if c.After == "" {
			after = os.DevNull
		}
		b.WriteString(udiff.Unified(before, after, c.Before, c.After))
	}
	return b.String()
}

// Apply writes the changes. It fails without a change if one of the files is no
// longer what the plan was made from.
func (p Plan) Apply() error {
	for _, c := range p.Changes {
		now, err := os.ReadFile(c.File)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if string(now) != c.Before {
			return fmt.Errorf("write %s: it has changed meanwhile; try again", c.File)
		}
	}
	for _, c := range p.Changes {
		if err := c.write(); err != nil {
			return err
		}
	}
	return nil
}

// write replaces the file at once, with the permissions that it had.
func (c Change) write() error {
	file := c.File
	if linked, err := filepath.EvalSymlinks(file); err == nil {
		file = linked // a link stays one
	}
	if c.After == "" {
		return os.Remove(file)
	}
	mode := fs.FileMode(0o600)
	if info, err := os.Stat(file); err == nil {
		mode = info.Mode().Perm()
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	temporary, err := os.CreateTemp(filepath.Dir(file), ".palimpsest-*")
	if err != nil {
		return err
	}
	_, err = temporary.WriteString(c.After)
	err = errors.Join(err, temporary.Chmod(mode), temporary.Sync(), temporary.Close())
	if err == nil {
		err = os.Rename(temporary.Name(), file)
	}
	if err != nil {
		return errors.Join(err, os.Remove(temporary.Name()))
	}
	return nil
}
