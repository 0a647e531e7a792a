package memory

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// Snapshot is what effects have made of one fact scope.
type Snapshot struct {
	Scope      scope.Scope
	Revision   uint64
	Facts      []events.Fact
	Versions   []events.Fact
	Entities   []events.Entity
	Edges      []events.Edge
	Holds      []events.Hold
	Watermarks map[string]uint64
}

// ExportMode says what an export leaves out.
type ExportMode int

// The modes of export.
const (
	ExportFull ExportMode = iota
	// ExportContent leaves out wall-clock fields as well, to compare two installations.
	ExportContent
)

// ModeOf returns [ExportContent] if content is set, [ExportFull] if not.
func ModeOf(content bool) ExportMode {
	if content {
		return ExportContent
	}
	return ExportFull
}

// Line is one object of the canonical export.
type Line struct {
	Kind     string // edge, entity, fact, hold, version or watermark
	Scope    scope.Scope
	ID       string
	Revision uint64 // of a version, else 0
	JSON     []byte // without the line break
}

const exportTime = "2006-01-02T15:04:05.000000Z"

// exportTimes names the members that are instants, and whether each is the
// wall clock's.
var exportTimes = map[string]bool{
	"event_time": false, "valid_from": false, "valid_until": false,
	"first_seen": false, "last_updated": false, "archived_at": false, "own_end": false,
	"created_at": true, "updated_at": true, "restored_at": true, "held_at": true, "since": true, "due": true,
}

// Export returns the canonical lines of one fact scope: an object per fact,
// earlier version, entity, edge, held candidate and watermark, with keys
// sorted, times in RFC 3339 with microseconds in UTC and floats in their
// shortest form; without vectors, access statistics, ordinals of candidates,
// stream sequences and outcomes.
func Export(s Snapshot, mode ExportMode) ([]Line, error) {
	x := exporter{scope: s.Scope, mode: mode}
	for _, f := range s.Facts {
		x.add("fact", f.ID, 0, f)
	}
	for _, f := range s.Versions {
		x.add("version", f.ID, f.Revision, f)
	}
	for _, e := range s.Entities {
		x.add("entity", e.ID, 0, e)
	}
	for _, e := range s.Edges {
		x.add("edge", e.ID, 0, e)
	}
	for _, h := range s.Holds {
		x.add("hold", h.ID, 0, h)
	}
	for rule, to := range s.Watermarks {
		x.add("watermark", rule, 0, map[string]any{"id": rule, "watermark": to})
	}
	if x.err != nil {
		return nil, fmt.Errorf("export %s: %w", s.Scope, x.err)
	}
	SortLines(x.lines)
	return x.lines, nil
}

// SortLines puts lines in the order of the export: kind, project, scope key,
// id, revision.
func SortLines(lines []Line) {
	slices.SortFunc(lines, func(a, b Line) int {
		return cmp.Or(
			cmp.Compare(a.Kind, b.Kind),
			cmp.Compare(a.Scope.Project, b.Scope.Project),
			cmp.Compare(a.Scope.Key(), b.Scope.Key()),
			cmp.Compare(a.ID, b.ID),
			cmp.Compare(a.Revision, b.Revision),
		)
	})
}

// WriteExport writes sorted lines as NDJSON.
func WriteExport(w io.Writer, lines []Line) error {
	for _, l := range lines {
		if _, err := w.Write(append(slices.Clip(l.JSON), '\n')); err != nil {
			return fmt.Errorf("write export: %w", err)
		}
	}
	return nil
}

// Digest is the SHA-256, in hex, of what [WriteExport] writes.
func Digest(lines []Line) string {
	h := sha256.New()
	_ = WriteExport(h, lines) // a hash does not fail
	return hex.EncodeToString(h.Sum(nil))
}

type exporter struct {
	scope scope.Scope
	mode  ExportMode
	lines []Line
	err   error
}

func (x *exporter) add(kind, id string, revision uint64, row any) {
	if x.err != nil {
		return
	}
	raw, err := x.line(kind, row)
	if err != nil {
		x.err = fmt.Errorf("%s %s: %w", kind, id, err)
		return
	}
	x.lines = append(x.lines, Line{Kind: kind, Scope: x.scope, ID: id, Revision: revision, JSON: raw})
}

// line goes through the generic form of JSON, which sorts keys and brings
// numbers that came by different ways into one form.
func (x *exporter) line(kind string, row any) ([]byte, error) {
	raw, err := json.Marshal(row)
	if err != nil {
		return nil, err
	}
	var object map[string]any
	if err := json.Unmarshal(raw, &object); err != nil {
		return nil, err
	}
	if err := x.canonical(object); err != nil {
		return nil, err
	}
	if candidate, ok := object["candidate"].(map[string]any); ok && kind == "hold" {
		delete(candidate, "ordinal")
		if err := x.canonical(candidate); err != nil {
			return nil, err
		}
	}
	if kind == "fact" || kind == "version" {
		object["fact_kind"] = object["kind"]
	}
	object["kind"], object["project"], object["scope"] = kind, x.scope.Project, x.scope.Key()
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(object); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}

// canonical rewrites the instants among the members of one object, and takes
// out members that are null, so that absence has one form.
func (x *exporter) canonical(object map[string]any) error {
	for _, key := range slices.Collect(maps.Keys(object)) {
		wallClock, instant := exportTimes[key]
		switch v := object[key].(type) {
		case nil:
			delete(object, key)
		case string:
			if !instant {
				continue
			}
			if wallClock && x.mode == ExportContent {
				delete(object, key)
				continue
			}
			t, err := time.Parse(time.RFC3339Nano, v)
			if err != nil {
				return fmt.Errorf("%s: %w", key, err)
			}
			object[key] = t.UTC().Truncate(time.Microsecond).Format(exportTime)
		}
	}
	return nil
}
