package ingest

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"palimpsest/internal/memory"
	"palimpsest/internal/pipeline"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

func TestRecordStoresAndAnnounces(t *testing.T) {
	t.Parallel()
	f := newFixture(t, Config{})
	in := said("e1", "hello")
	no := false
	in.Data.Infer, in.Data.SourceNode, in.Data.Metadata = &no, "node-1", map[string]any{"k": "v"}
	out, err := f.recordOne(t, in)
	if err != nil {
		t.Fatal(err)
	}
	want := []events.Payload{events.EpisodeStored{
		Header: events.Header{Scope: alice.Fact()}, EpisodeID: "e1", LastOrdinal: 1, StoredAt: noon,
	}}
	if diff := cmp.Diff(want, out); diff != "" {
		t.Errorf("announced (-want +got):\n%s", diff)
	}
	stored := []memory.Episode{{
		ID: "e1", Source: "app", Scope: alice, Role: events.RoleUser, Content: "hello",
		Timestamp: noon, ArrivedAt: noon, SourceNode: "node-1", Metadata: map[string]any{"k": "v"},
		Mode: events.ModePersistent, Seq: 7, Ordinal: 1, CorrelationID: "c-e1", Verbatim: true,
	}}
	if diff := cmp.Diff(stored, f.episodes.puts); diff != "" {
		t.Errorf("stored (-want +got):\n%s", diff)
	}
	select {
	case <-f.wake:
	default:
		t.Error("the embedding loop was not woken")
	}
}

// stored is what is announced of a fact scope.
func stored(s scope.Scope, id string, last uint64) []events.Payload {
	return []events.Payload{events.EpisodeStored{Header: events.Header{Scope: s.Fact()}, EpisodeID: id, LastOrdinal: last, StoredAt: noon}}
}

func TestBatchIsStoredInOrderAndAnnouncedOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t, Config{})
	batch := func() []*pipeline.Entry {
		return entries(t, said("e1", "one"), saidIn(bob, "b1", "hello"), said("e2", "two"), said("e1", "one"), said("e3", "three"))
	}
	for range 3 { // it comes again after a crash, and is announced again
		out := f.mustRecord(t, batch())
		want := [][]events.Payload{nil, stored(bob, "b1", 1), nil, nil, stored(alice, "e3", 3)}
		if diff := cmp.Diff(want, out); diff != "" {
			t.Errorf("announced (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(map[string]uint64{"e1": 1, "e2": 2, "e3": 3, "b1": 1}, f.episodes.ordinals()); diff != "" {
			t.Errorf("stored (-want +got):\n%s", diff)
		}
	}
	if f.episodes.calls != 3 {
		t.Errorf("stored in %d steps, want 3", f.episodes.calls)
	}
}

// TestSessionEndKeepsItsPlace: it counts on all before it, and on nothing behind it.
func TestSessionEndKeepsItsPlace(t *testing.T) {
	t.Parallel()
	f := newFixture(t, Config{})
	for range 2 {
		in := entries(t, said("e1", "one"), said("e2", "two"), said("e3", "three"), saidIn(bob, "b1", "hello"))
		in = slices.Insert(in, 2, ended(t, alice, 2))
		in = append(in, ended(t, bob, 1))
		out := f.mustRecord(t, in)
		want := [][]events.Payload{nil, nil, nil, stored(alice, "e3", 3), nil, stored(bob, "", 1)}
		if diff := cmp.Diff(want, out); diff != "" {
			t.Errorf("announced (-want +got):\n%s", diff)
		}
	}
	if len(f.episodes.puts) != 4 || len(f.episodes.ends) != 4 || f.episodes.endedAt[0] != 2 {
		t.Errorf("%d episodes, %d ends, the first behind %v", len(f.episodes.puts), len(f.episodes.ends), f.episodes.endedAt)
	}
}

// TestRefusalKeepsNothingBack: a message that is refused is buried alone.
func TestRefusalKeepsNothingBack(t *testing.T) {
	t.Parallel()
	f := newFixture(t, Config{MaxContent: 10})
	f.mustRecord(t, entries(t, said("e1", "one")))
	in := entries(t, said("e2", strings.Repeat("x", 11)), said("e3", "three"), said("e1", "other"))
	unknown := events.FactReturned{Header: events.Header{Scope: alice.Fact()}, FactIDs: []string{"f"}, At: noon}
	in = append(in, entryOf(t, events.Meta{ID: "x", Source: "app", Scope: alice.Fact(), Kind: unknown.Kind(), Time: noon}, unknown))
	out := f.mustRecord(t, in, "refused", "", "refused", "refused")
	if diff := cmp.Diff([][]events.Payload{nil, stored(alice, "e3", 2), nil, nil}, out); diff != "" {
		t.Errorf("announced (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]uint64{"e1": 1, "e3": 2}, f.episodes.ordinals()); diff != "" {
		t.Errorf("stored (-want +got):\n%s", diff)
	}
	if f.episodes.calls != 2 {
		t.Errorf("stored in %d steps, want 2: a conflict is an answer", f.episodes.calls)
	}
}

// TestFailingScopeWaitsAlone, with all that stands behind its first failure: episodes
// keep their places.
func TestFailingScopeWaitsAlone(t *testing.T) {
	t.Parallel()
	f := newFixture(t, Config{})
	f.episodes.away = map[scope.Scope]error{bob.Fact(): errors.New("connection refused")}
	batch := func() []*pipeline.Entry {
		in := entries(t, said("e1", "one"), saidIn(bob, "b1", "hello"), said("e2", "two"), saidIn(bob, "b2", "again"), said("e3", "three"))
		return slices.Insert(in, 4, ended(t, alice, 2), ended(t, bob, 2))
	}
	in := batch()
	in = append(in, entries(t, saidIn(bob, "b3", "more"))...)
	out := f.mustRecord(t, in, "", "retried", "", "retried", "", "retried", "", "retried")
	if diff := cmp.Diff(stored(alice, "e3", 3), out[6]); diff != "" {
		t.Errorf("announced (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]uint64{"e1": 1, "e2": 2, "e3": 3}, f.episodes.ordinals()); diff != "" {
		t.Errorf("stored (-want +got):\n%s", diff)
	}
	if f.episodes.endedAt[0] != 2 || len(f.episodes.ends) != 1 {
		t.Errorf("sessions end behind %v", f.episodes.endedAt)
	}
	// A scope that failed is not tried again in the same batch, even if it is back.
	blocked := &announcements{}
	blocked.failed([]item{{entry: in[1]}}, errors.New("connection refused"))
	f.episodes.away = nil
	if open := blocked.open([]item{{entry: in[3]}, {entry: in[4]}}); len(open) != 1 || open[0].entry != in[4] {
		t.Errorf("%d messages are open behind a failure", len(open))
	}
	in = batch()
	f.mustRecord(t, in)
	if diff := cmp.Diff(map[string]uint64{"e1": 1, "e2": 2, "e3": 3, "b1": 1, "b2": 2}, f.episodes.ordinals()); diff != "" {
		t.Errorf("stored (-want +got):\n%s", diff)
	}
}

// TestFailingEndBlocksItsScope: nothing is stored behind the end of a session that
// could not be recorded.
func TestFailingEndBlocksItsScope(t *testing.T) {
	t.Parallel()
	f := newFixture(t, Config{})
	f.episodes.endErr = errors.New("disk on fire")
	in := append(entries(t, said("e1", "one")), ended(t, alice, 0))
	in = append(in, entries(t, said("e2", "two"), saidIn(bob, "b1", "hello"))...)
	out := f.mustRecord(t, in, "", "retried", "retried", "")
	if diff := cmp.Diff([][]events.Payload{stored(alice, "e1", 1), nil, nil, stored(bob, "b1", 1)}, out); diff != "" {
		t.Errorf("announced (-want +got):\n%s", diff)
	}
}

func TestKnownEpisodeIsAnnouncedAgain(t *testing.T) {
	t.Parallel()
	f := newFixture(t, Config{})
	first, err := f.recordOne(t, said("e1", "hello"))
	if err != nil {
		t.Fatal(err)
	}
	for range 1000 {
		again, err := f.recordOne(t, said("e1", "hello"))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(first, again); diff != "" {
			t.Fatalf("announced otherwise (-first +again):\n%s", diff)
		}
	}
	if len(f.episodes.puts) != 1 {
		t.Errorf("stored %d times", len(f.episodes.puts))
	}
}

func TestConflictIsRejected(t *testing.T) {
	t.Parallel()
	f := newFixture(t, Config{})
	if _, err := f.recordOne(t, said("e1", "hello")); err != nil {
		t.Fatal(err)
	}
	out, err := f.recordOne(t, said("e1", "something else"))
	if !pipeline.IsRefused(err) || !strings.Contains(err.Error(), "id: ") || len(out) != 0 {
		t.Errorf("a known id with other content: %v, %v", out, err)
	}
}

func TestStoreErrorIsRetried(t *testing.T) {
	t.Parallel()
	f := newFixture(t, Config{})
	f.episodes.err = errors.New("disk on fire")
	f.mustRecord(t, entries(t, said("e1", "hello")), "retried")
	f.mustRecord(t, entries(t, said("e1", "hello"), saidIn(bob, "b1", "hello")), "retried", "retried")
	f.mustRecord(t, []*pipeline.Entry{ended(t, alice, 0)}, "retried")
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	cfg := Config{MaxContent: 10, MaxMetadata: 20}
	tests := map[string]struct {
		change func(*events.EpisodeRecorded)
		field  string // empty: accepted
	}{
		"content at the limit":  {func(d *events.EpisodeRecorded) { d.Content = strings.Repeat("x", 10) }, ""},
		"content over it":       {func(d *events.EpisodeRecorded) { d.Content = strings.Repeat("x", 11) }, "content"},
		"bytes, not characters": {func(d *events.EpisodeRecorded) { d.Content = "ёёёёёё" }, "content"},
		"prompt at the limit":   {func(d *events.EpisodeRecorded) { d.Prompt = "Find pets." }, ""},
		"prompt over it":        {func(d *events.EpisodeRecorded) { d.Prompt = "Find allergies." }, "prompt"},
		"node over it":          {func(d *events.EpisodeRecorded) { d.SourceNode = strings.Repeat("x", 257) }, "source_node"},
		"metadata at the limit": {func(d *events.EpisodeRecorded) { d.Metadata = map[string]any{"k": "123456789012"} }, ""},
		"metadata over it":      {func(d *events.EpisodeRecorded) { d.Metadata = map[string]any{"k": "12345678901234"} }, "metadata"},
		"backfill":              {func(d *events.EpisodeRecorded) { d.Mode = events.ModeBackfill }, ""},
		"incognito":             {func(d *events.EpisodeRecorded) { d.Mode = events.ModeIncognito }, "mode"},
		"zone":                  {func(d *events.EpisodeRecorded) { d.Metadata = map[string]any{"tz": "Asia/Tokyo"} }, ""},
		"no zone":               {func(d *events.EpisodeRecorded) { d.Metadata = map[string]any{"tz": "Mars/One"} }, "metadata.tz"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, cfg)
			in := said("e1", "hello")
			tt.change(&in.Data)
			_, err := f.recordOne(t, in)
			switch {
			case tt.field == "" && err != nil:
				t.Errorf("refused: %v", err)
			case tt.field != "" && !pipeline.IsRefused(err):
				t.Errorf("accepted, or retried: %v", err)
			case tt.field != "" && !strings.Contains(err.Error(), strings.TrimPrefix(tt.field, "mode")):
				t.Errorf("%v does not name %s", err, tt.field)
			}
			if stored := len(f.episodes.puts) == 1; stored != (tt.field == "") {
				t.Errorf("stored: %t", stored)
			}
		})
	}
}

func TestTimestamps(t *testing.T) {
	t.Parallel()
	berlin := time.FixedZone("", 3600)
	tests := map[string]struct {
		claimed time.Time
		tz      any
		want    string
		clamped bool
	}{
		"absent is arrival":       {time.Time{}, nil, "2026-03-01T12:00:00Z", false},
		"kept with its offset":    {noon.In(berlin), nil, "2026-03-01T13:00:00+01:00", false},
		"years ago":               {time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC), nil, "1999-01-01T00:00:00Z", false},
		"five minutes ahead":      {noon.Add(5 * time.Minute), nil, "2026-03-01T12:05:00Z", false},
		"more is clamped":         {noon.Add(5*time.Minute + 1), nil, "2026-03-01T12:00:00Z", true},
		"clamped with its offset": {noon.Add(time.Hour).In(berlin), nil, "2026-03-01T13:00:00+01:00", true},
		"tz overrides":            {noon.In(berlin), "America/New_York", "2026-03-01T07:00:00-05:00", false},
		"tz of an arrival":        {time.Time{}, "+05:45", "2026-03-01T17:45:00+05:45", false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, Config{})
			in := said("e1", "hello")
			in.Data.Timestamp = events.Timestamp{Time: tt.claimed}
			if tt.tz != nil {
				in.Data.Metadata = map[string]any{events.MetaTimezone: tt.tz}
			}
			if _, err := f.recordOne(t, in); err != nil {
				t.Fatal(err)
			}
			got := f.episodes.puts[0]
			if at := got.Timestamp.Format(time.RFC3339Nano); at != tt.want || got.Clamped != tt.clamped {
				t.Errorf("at %s, clamped %t; want %s, %t", at, got.Clamped, tt.want, tt.clamped)
			}
		})
	}
}

func TestParseZone(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]int{
		"Z": 0, "UTC": 0, "+02:00": 7200, "-0530": -19800, "+03": 10800, "UTC+2": 7200, "GMT-3": -10800,
		" Asia/Tokyo ": 32400,
	} {
		loc, err := parseZone(name)
		if err != nil {
			t.Errorf("%q: %v", name, err)
			continue
		}
		if _, got := noon.In(loc).Zone(); got != want {
			t.Errorf("%q is %d s from UTC, want %d", name, got, want)
		}
	}
	for _, name := range []string{"Local", "+25:00", "+24:00", "2", "Europe", "../etc/passwd", "+2:0", strings.Repeat("a", 300)} {
		if loc, err := parseZone(name); err == nil {
			t.Errorf("%q was read as %v", name, loc)
		}
	}
}

func FuzzParseZone(f *testing.F) {
	for _, seed := range []string{"Europe/Berlin", "+02:00", "UTC-11", "", "\x00", "+9"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		loc, err := parseZone(name)
		if err != nil {
			return
		}
		if _, offset := noon.In(loc).Zone(); offset <= -86400 || offset >= 86400 {
			t.Errorf("%q is %d s from UTC", name, offset)
		}
	})
}

func TestSessionEnd(t *testing.T) {
	t.Parallel()
	f := newFixture(t, Config{})
	end := func() []*pipeline.Entry { return []*pipeline.Entry{ended(t, alice, 1)} }
	if out := f.mustRecord(t, end()); len(out[0]) != 0 {
		t.Fatalf("end of an unknown scope: %v; want nothing announced", out)
	}
	f.mustRecord(t, entries(t, said("e1", "hello")))
	if diff := cmp.Diff(stored(alice, "", 1), f.mustRecord(t, end())[0]); diff != "" {
		t.Errorf("announced (-want +got):\n%s", diff)
	}
	wantEnd := events.SessionEnd{Session: "s1", LastOrdinal: 1, Cause: events.EndIdle, At: noon}
	if diff := cmp.Diff(wantEnd, f.episodes.ends[1]); diff != "" {
		t.Errorf("stored (-want +got):\n%s", diff)
	}
}

// TestAnnouncedScopeIsTheFactScope checks that for any scope an episode is announced
// under its fact scope.
func TestAnnouncedScopeIsTheFactScope(t *testing.T) {
	t.Parallel()
	id := rapid.SampledFrom([]string{"", "a", "b", "*", "a/../b"})
	rapid.Check(t, func(rt *rapid.T) {
		s := scope.Scope{Project: "p", User: id.Draw(rt, "user"), Agent: id.Draw(rt, "agent"), Session: id.Draw(rt, "session")}
		if s.Validate() != nil {
			rt.Skip()
		}
		f := newFixture(t, Config{})
		in := said("e1", "hello")
		in.Scope, in.Data.Scope = s, s
		out, err := f.recordOne(t, in)
		if err != nil {
			rt.Fatal(err)
		}
		if got := out[0].Owner(); got != s.Fact() || out[0].Validate() != nil {
			rt.Errorf("announced %v for %v", got, s)
		}
	})
}
