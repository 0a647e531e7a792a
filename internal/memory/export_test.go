package memory

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

func exported(t *testing.T, s Snapshot, mode ExportMode) string {
	t.Helper()
	lines, err := Export(s, mode)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := WriteExport(&out, lines); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestExport(t *testing.T) {
	t.Parallel()
	east := time.FixedZone("", 2*60*60)
	s := Snapshot{
		Scope: alice,
		Facts: []events.Fact{{
			ID: "f1", Revision: 2, Kind: events.FactSemantic, Text: "a < b", Confidence: 0.1, DecayRate: 1e-9,
			EventTime: time.Date(2026, 1, 2, 5, 4, 5, 123456789, east), CreatedAt: noon, UpdatedAt: noon, ValidFrom: noon,
			Metadata: map[string]any{"z": 1.0, "a": "x", "created_at": "never"},
		}},
		Versions:   []events.Fact{{ID: "f1", Revision: 10}, {ID: "f1", Revision: 9}},
		Holds:      []events.Hold{{ID: "h", HeldAt: noon, Candidate: events.Candidate{ID: "h", Ordinal: 7, EventTime: noon}}},
		Watermarks: map[string]uint64{"turn": 3, "sleep": 2},
	}
	full := strings.Split(strings.TrimSpace(exported(t, s, ExportFull)), "\n")
	want := `{"category":"","confidence":0.1,"created_at":"2026-03-01T12:00:00.000000Z","decay_rate":1e-9,` +
		`"event_time":"2026-01-02T03:04:05.123456Z","fact_kind":"semantic","hash":"","id":"f1","kind":"fact",` +
		`"metadata":{"a":"x","created_at":"never","z":1},"project":"p","revision":2,"rule_id":"","scope":"/user/alice/",` +
		`"source_role":"","source_type":"","text":"a < b","updated_at":"2026-03-01T12:00:00.000000Z","valid_from":"2026-03-01T12:00:00.000000Z"}`
	if diff := cmp.Diff(want, full[0]); diff != "" {
		t.Error(diff)
	}
	if strings.Contains(full[1], "ordinal") || !strings.Contains(full[1], `"held_at"`) {
		t.Errorf("hold: %s", full[1])
	}
	if !strings.Contains(full[2], `"revision":9`) || !strings.Contains(full[3], `"revision":10`) {
		t.Errorf("versions are out of order: %s, %s", full[2], full[3])
	}
	if full[4] != `{"id":"sleep","kind":"watermark","project":"p","scope":"/user/alice/","watermark":2}` {
		t.Errorf("watermark: %s", full[4])
	}
	content := exported(t, s, ExportContent)
	for _, member := range []string{`"updated_at"`, `"held_at"`, `"created_at":"2026`} {
		if strings.Contains(content, member) {
			t.Errorf("content holds %s", member)
		}
	}
	if !strings.Contains(content, `"created_at":"never"`) || !strings.Contains(content, `"event_time"`) {
		t.Errorf("content lost members: %s", content)
	}
}

func TestDigest(t *testing.T) {
	t.Parallel()
	digest := func(snapshots ...Snapshot) string {
		var all []Line
		for _, s := range snapshots {
			lines, err := Export(s, ExportFull)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, lines...)
		}
		SortLines(all)
		return Digest(all)
	}
	a := Snapshot{Scope: alice, Facts: []events.Fact{{ID: "1"}, {ID: "2"}}, Watermarks: map[string]uint64{"turn": 1}}
	swapped := Snapshot{Scope: alice, Facts: []events.Fact{{ID: "2"}, {ID: "1"}}, Watermarks: map[string]uint64{"turn": 1}}
	b := Snapshot{Scope: scope.Scope{Project: "p", User: "bob"}, Facts: []events.Fact{{ID: "1"}}}
	if digest(a, b) != digest(b, swapped) {
		t.Error("the order of rows shows in the digest")
	}
	if digest(a) == digest(b) || len(digest()) != 64 {
		t.Error("digests of different scopes agree")
	}
}
