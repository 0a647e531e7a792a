package eval

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"palimpsest/internal/extract"
	"palimpsest/internal/memory"
	"palimpsest/pkg/events"
)

// echo finds what each line of a text says: "subject predicate object".
type echo struct{}

func (echo) Name() string { return "echo@1" }

func (echo) Extract(_ context.Context, episodes []memory.Episode, _ extract.Context) (out []events.Candidate, err error) {
	for _, e := range episodes {
		for line := range strings.Lines(e.Content) {
			if f := strings.Fields(line); len(f) == 3 {
				out = append(out, events.Candidate{Subject: f[0], Predicate: f[1], Object: f[2], Explicit: true, EventTime: e.Timestamp})
			}
		}
	}
	return out, nil
}

func (echo) Mentions(content string) []events.Mention {
	return []events.Mention{{Name: content, Type: events.EntityPerson}}
}

func TestExtraction(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "set.jsonl")
	text := strings.Join([]string{
		`{"id":"1","text":"user lives_in Oslo\nuser likes tea","facts":[{"s":"user","r":"home","o":"Oslo","date":"2026-11-20"},{"s":"user","r":"pet","o":"a cat"}]}`,
		`{"id":"2","text":"user likes rain","facts":[]}`,
		`{"id":"3","text":"user owns bike","facts":[{"s":"i","r":"have_vehicle","o":"the bike"}]}`,
		`{"id":"4","text":"nothing","pos":true}`,
		`{"id":"5","text":"Ines","entities":[{"name":"ines","type":"place"}]}`,
		`{"id":"6","text":"user works_on sails","facts":[{"s":"user","r":"job|project","o":"sails","date":"2020-01-01"}]}`,
	}, "\n")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	set, err := LoadUtterances(filepath.Dir(file))
	if err != nil {
		t.Fatal(err)
	}
	got, err := Extraction(t.Context(), set, echo{})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]Score{
		"home": {1, 1, 1}, "pet": {1, 0, 0}, "like": {0, 2, 0}, "have_vehicle": {1, 1, 1}, "job": {1, 1, 1},
	}
	if diff := cmp.Diff(want, got.Categories); diff != "" {
		t.Errorf("categories (-want +got):\n%s", diff)
	}
	if got.Silent != 1 || got.Fired != 1 || got.Dates != 2 || got.DatesRight != 1 {
		t.Errorf("%d of %d silent, %d of %d dates", got.Fired, got.Silent, got.DatesRight, got.Dates)
	}
	if got.Bearing != (Score{1, 0, 0}) || got.Names != (Score{1, 1, 1}) || got.Typed != (Score{1, 1, 0}) {
		t.Errorf("bearing %+v, names %+v, typed %+v", got.Bearing, got.Names, got.Typed)
	}
	if o := got.Outcomes[0]; len(o.Missed) != 1 || len(o.Surplus) != 1 || o.Facts[0].EventTime != time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC) {
		t.Errorf("outcome %+v", o)
	}
	if err := got.WriteOutcomes(filepath.Join(t.TempDir(), "out.jsonl")); err != nil {
		t.Error(err)
	}
}

func TestLoadUtterancesRefuses(t *testing.T) {
	t.Parallel()
	for _, text := range []string{`{"text":""}`, `{"text":"a"}`, `{"text":"a","facts":[{"date":"May"}]}`, `{`} {
		file := filepath.Join(t.TempDir(), "set.jsonl")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := LoadUtterances(file); err == nil {
			t.Errorf("%s: loaded", text)
		}
	}
}
