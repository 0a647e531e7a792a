package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"

	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// note is a line of the file: what an effect made known, and which effect it
// was. Both stand in one line, so that neither is ever there without the other.
type note struct {
	Scope    scope.Scope `json:"scope"`
	Revision uint64      `json:"revision"`
	Sequence uint64      `json:"sequence"`
	Facts    []string    `json:"facts"`
}

// notes is the file, and the last revision of each scope in it.
type notes struct {
	file *os.File
	last map[scope.Scope]uint64
}

// openNotes reads what is noted. A line that a crash cut off is taken away: its
// effect was not acknowledged, and comes again.
func openNotes(path string) (n *notes, err error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, file.Close())
		}
	}()
	text, err := io.ReadAll(file)
	if err != nil {
		return nil, err
	}
	whole := bytes.LastIndexByte(text, '\n') + 1
	n = &notes{file: file, last: map[scope.Scope]uint64{}}
	for line := range bytes.Lines(text[:whole]) {
		var known note
		if err := json.Unmarshal(line, &known); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		n.last[known.Scope] = max(n.last[known.Scope], known.Revision)
	}
	if err := file.Truncate(int64(whole)); err != nil {
		return nil, err
	}
	_, err = file.Seek(int64(whole), io.SeekStart)
	return n, err
}

// add notes an effect that is not noted yet, and returns once it is on the disk.
// Revisions of a scope come one by one, so that the last says all.
func (n *notes) add(e events.Event[events.EffectCommitted]) error {
	s, revision := e.Data.Scope, e.Data.Revision
	switch last := n.last[s]; {
	case revision <= last:
		return nil
	case revision > last+1:
		slog.Warn("revisions are not in the stream any more", "scope", s.String(), "from", last+1, "to", revision-1)
	}
	known := note{Scope: s, Revision: revision, Sequence: e.Sequence, Facts: []string{}}
	for _, f := range e.Data.Facts {
		known.Facts = append(known.Facts, f.Text)
	}
	line, err := json.Marshal(known)
	if err != nil {
		return err
	}
	if _, err := n.file.Write(append(line, '\n')); err != nil {
		return err
	}
	if err := n.file.Sync(); err != nil {
		return err
	}
	n.last[s] = revision
	return nil
}

// Close closes the file.
func (n *notes) Close() error { return n.file.Close() }
