package query

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"palimpsest/internal/audit"
	"palimpsest/internal/memory"
	"palimpsest/internal/store"
	"palimpsest/pkg/api"
	"palimpsest/pkg/client"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// fact1 is revision of a fact of nora's.
func fact1(id string, revision uint64, text string) store.Fact {
	return store.Fact{Scope: nora, Strength: 1, LastAccessed: noon, Fact: events.Fact{
		ID: id, Revision: revision, Kind: events.FactSemantic, Category: "biography", Text: text, Confidence: 1, DecayRate: 0.1,
		CreatedAt: noon.Add(-time.Hour), UpdatedAt: noon, ValidFrom: noon.Add(-time.Hour), EventTime: noon,
		SourceType: events.SourceConversation, SourceRole: events.RoleUser, RuleID: "turn/moved",
	}}
}

func closed(f store.Fact) store.Fact {
	f.ValidUntil = ptr(noon.Add(-time.Minute))
	return f
}

func factIDs(facts []api.Fact) []string {
	var out []string
	for _, f := range facts {
		out = append(out, f.ID)
	}
	return out
}

func TestListFacts(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	archived, ended, opinion, rival := fact1("d", 1, "d"), closed(fact1("c", 1, "c")), fact1("b", 1, "b"), fact1("r", 1, "r")
	archived.ArchivedAt, opinion.Kind, opinion.SessionIDs = ptr(noon), events.FactOpinion, []string{"s1"}
	rival.Scope.Project = "rival"
	r.store.facts = []store.Fact{fact1("a", 1, "a"), opinion, ended, archived, rival}
	for query, want := range map[string][]string{
		"?all=true":                               {"b", "a"},
		"?all=true&closed=true":                   {"d", "c", "b", "a"},
		"?all=true&archived=true":                 {"d", "b", "a"},
		"?all=true&kinds=opinion":                 {"b"},
		"?all=true&kinds=opinion,semantic":        {"b", "a"},
		"?session=s1&user=nora":                   {"b"},
		"?user=ben":                               nil,
		"?all=true&project=rival":                 {"r"},
		"?all=true&valid_at=2026-04-02T11:30:00Z": {"c", "b", "a"},
		"?all=true&valid_at=2020-01-01":           nil,
		"?all=true&limit=1":                       {"b"},
	} {
		out := into[api.FactPage](t, r.do(http.MethodGet, "/v1/facts"+query, ""), 200)
		if diff := cmp.Diff(want, factIDs(out.Facts)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", query, diff)
		}
	}
	var got []string
	for cursor := ""; ; {
		p, err := r.client.Facts(t.Context(), everyone, client.ListFacts{Limit: 2, Closed: true, Cursor: cursor})
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, factIDs(p.Facts)...)
		if cursor = p.Next; cursor == "" {
			break
		}
	}
	if diff := cmp.Diff([]string{"d", "c", "b", "a"}, got); diff != "" {
		t.Errorf("pages (-want +got):\n%s", diff)
	}
}

func TestGetFact(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	old := fact1("a/b", 1, "before")
	now := fact1("a/b", 2, "after")
	now.LastAccessed, now.Strength = noon.Add(-48*time.Hour), 0.9
	r.store.facts, r.store.versions = []store.Fact{now, closed(fact1("gone", 3, "gone"))}, []store.Fact{old}
	a := r.do(http.MethodGet, "/v1/facts/a%2Fb", "")
	f := into[api.Fact](t, a, 200)
	if a.header.Get("ETag") != `"2"` || f.Text != "after" || f.User != "nora" {
		t.Errorf("%v %+v", a.header, f)
	}
	if want := memory.Confidence(0.9, 0.1, now.LastAccessed, noon); f.Confidence != want || want == 0.9 {
		t.Errorf("confidence %v, want %v", f.Confidence, want)
	}
	if v, err := r.client.Fact(t.Context(), "a/b", 1); err != nil || v.Text != "before" {
		t.Errorf("%+v, %v", v, err)
	}
	if v, err := r.client.Fact(t.Context(), "gone", 3); err != nil || v.ValidUntil == nil {
		t.Errorf("a version of a closed fact: %+v, %v", v, err)
	}
	for _, path := range []string{"/v1/facts/gone", "/v1/facts/a%2Fb?project=rival", "/v1/facts/a%2Fb?revision=9", "/v1/facts/a"} {
		if p := r.do(http.MethodGet, path, "").problem(t); p.Status != 404 || p.Code != api.CodeNotFound {
			t.Errorf("%s: %+v", path, p)
		}
	}
	if _, err := r.client.Fact(t.Context(), "", 0); err == nil {
		t.Error("an empty id is asked for")
	}
}

// effect is the i-th effect on fact f of nora's, as AUDIT holds it.
func effect(i int) events.Event[events.EffectCommitted] {
	p := events.Provenance{
		ID: fmt.Sprint("delta", i), SourceEpisodeIDs: []string{"e1"}, PromotionTS: noon, RuleID: "turn/moved", Confidence: 1,
		Reason: events.ReasonNew, DecidedBy: "rules@v1",
	}
	f := fact1("f", uint64(i), fmt.Sprint("text ", i)).Fact
	e := events.EffectCommitted{
		Header: events.Header{Scope: nora}, Revision: uint64(i), Rule: "turn", CommittedAt: noon, Facts: []events.Fact{f},
	}
	applied := events.Applied{FactID: "f", After: memory.AddressOf(f).String()}
	if i == 1 {
		applied.Delta, _ = events.NewAdd(p, events.FactPayload{Fact: &f})
	} else {
		before := fact1("f", uint64(i-1), fmt.Sprint("text ", i-1)).Fact
		e.Versions, applied.Before = []events.Fact{before}, memory.AddressOf(before).String()
		applied.Delta, _ = events.NewUpdate(p, events.FactPayload{Fact: &f}, []string{"f"})
	}
	e.Applied = []events.Applied{applied}
	return events.Event[events.EffectCommitted]{Meta: events.Meta{ID: fmt.Sprint("effect", i), Scope: nora, Sequence: uint64(10 * i), Time: noon}, Data: e}
}

func TestHistoryMergesLogAndJournal(t *testing.T) {
	t.Parallel()
	for logged := -1; logged <= 3; logged++ {
		r := newRig(t)
		if logged < 0 { // it is down: AUDIT has it all
			r.log.err = errDown
		}
		r.store.facts = []store.Fact{closed(fact1("f", 3, "text 3"))}
		for i := 1; i <= 3; i++ {
			r.journal.effects = append(r.journal.effects, effect(i))
			if i <= logged {
				r.log.records = append(r.log.records, audit.Records(effect(i))...)
			}
		}
		// The log may have written more since it was asked how far it is.
		r.log.last = uint64(10 * max(logged-1, 0))
		h, err := r.client.History(t.Context(), "f")
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, c := range h.Changes {
			got = append(got, c.Event+" "+c.OldMemory+" > "+c.NewMemory)
		}
		want := []string{"ADD  > text 1", "UPDATE text 1 > text 2", "UPDATE text 2 > text 3"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%d logged (-want +got):\n%s", logged, diff)
		}
		h, err = r.client.HistoryWhere(t.Context(), "f", revisions("1", "3"))
		if err != nil || len(h.Changes) != 2 || h.Changes[0].Revision != 1 || h.Changes[1].Revision != 3 {
			t.Errorf("%d logged: revisions 1 and 3 are %+v, %v", logged, h.Changes, err)
		}
	}
}

func TestHistoryOfADeletion(t *testing.T) {
	t.Parallel()
	f := fact1("f", 2, "x").Fact
	c := viewChange(audit.Record{Scope: nora, Kind: events.DeltaDelete, Before: &f, After: &f})
	if c.Event != "DELETE" || c.OldMemory != "x" || c.NewMemory != "" || c.After == nil {
		t.Errorf("%+v", c)
	}
}

func TestHistoryIsNotAcrossProjects(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.store.facts = []store.Fact{fact1("f", 1, "x")}
	for _, verb := range []string{"history", "explain"} {
		if p := r.do(http.MethodGet, "/v1/facts/f/"+verb+"?project=rival", "").problem(t); p.Status != 404 {
			t.Errorf("%s: %+v", verb, p)
		}
	}
	r.journal.failAt = 0
	if p := r.do(http.MethodGet, "/v1/facts/f/history", "").problem(t); p.Status != 503 {
		t.Errorf("%+v", p)
	}
}

func TestExplain(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	f := fact1("f", 2, "text 2")
	f.SourceEpisodeIDs, f.EvidenceQuote, f.EntityIDs = []string{"e1"}, "said e1", []string{"ent1"}
	r.store.facts, r.store.versions = []store.Fact{f}, []store.Fact{fact1("f", 1, "text 1")}
	r.store.put(said1("e1", nora, noon, 1))
	r.store.entities[nora] = []events.Entity{{ID: "ent1", CanonicalName: "Oslo", Type: events.EntityPlace}, {ID: "ent2", CanonicalName: "Bergen"}}
	r.journal.effects = []events.Event[events.EffectCommitted]{effect(1), effect(2)}
	e, err := r.client.Explain(t.Context(), "f")
	if err != nil {
		t.Fatal(err)
	}
	if e.Fact.Revision != 2 || e.Quote != "said e1" || len(e.Episodes) != 1 || len(e.Decisions) != 2 || e.Decisions[0].DeltaID != "delta1" ||
		len(e.Versions) != 1 || e.Versions[0].Text != "text 1" || len(e.Entities) != 1 || e.Entities[0].Name != "Oslo" {
		t.Errorf("%+v", e)
	}
}

// TestFactsOfAnUnreadLanguage: the list says that no pack reads what the user writes.
func TestFactsOfAnUnreadLanguage(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(_ *Config, d *Deps) {
		d.Understands = func(texts []string) bool { return len(texts) != 1 || texts[0] != "Jag bor i Lund." }
	})
	for content, want := range map[string]int{"Jag bor i Lund.": 1, "I live in Lund.": 0} {
		r.store.episodes = []memory.Episode{{ID: "e", Scope: nora, Role: events.RoleUser, Content: content, Timestamp: noon, Ordinal: 1}}
		page, err := r.client.Facts(t.Context(), scope.Selector{Project: nora.Project, User: &nora.User}, client.ListFacts{})
		if err != nil || len(page.Warnings) != want {
			t.Errorf("%q: %q, %v; want %d warnings", content, page.Warnings, err, want)
		}
	}
}
