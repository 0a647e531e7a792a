package events

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"palimpsest/pkg/scope"
)

func TestSubjects(t *testing.T) {
	t.Parallel()
	full, fact := alice(), alice().Fact()
	head := Header{Scope: fact}
	for want, p := range map[string]Payload{
		"palimpsest.episodes.default.alice.helper.s-1":            EpisodeRecorded{Scope: full},
		"palimpsest.incognito.default.alice.helper.s-1":           EpisodeRecorded{Scope: full, Mode: ModeIncognito},
		"palimpsest.stored.default.alice.helper._":                EpisodeStored{Header: head},
		"palimpsest.ticks.rules.default.alice.helper._":           TickIssued{Batch: Batch{Header: head}},
		"palimpsest.candidates.rules.default.alice.helper._":      CandidatesExtracted{Batch: Batch{Header: head}},
		"palimpsest.commands.default.alice.helper._":              CommandRequested{Header: head},
		"palimpsest.deltas.rules.default.alice.helper._":          DeltasDecided{Batch: Batch{Header: head}},
		"palimpsest.ticks.model.default.alice.helper._":           TickIssued{Batch: Batch{Header: head, Class: ClassModel}},
		"palimpsest.candidates.model.default.alice.helper._":      CandidatesExtracted{Batch: Batch{Header: head, Class: ClassModel}},
		"palimpsest.deltas.model.default.alice.helper._":          DeltasDecided{Batch: Batch{Header: head, Class: ClassModel}},
		"palimpsest.audit.default.alice.helper._":                 EffectCommitted{Header: head},
		"palimpsest.access.default.alice.helper._":                FactReturned{Header: head},
		"palimpsest.outcomes.req-%2A":                             OutcomeAnnounced{Header: head, Outcome: Outcome{CorrelationID: "req-*"}},
		"palimpsest.deadletter.ingest.default.alice.helper._":     MessageBuried{Scope: full, Service: "ingest"},
		"palimpsest.deadletter.ingest._._._._":                    MessageBuried{Service: "ingest"},
		"palimpsest.deadletter.ingest.default._.helper.s%2F1":     MessageBuried{Service: "ingest", Scope: scope.Scope{Project: "default", Agent: "helper", Session: "s/1"}},
		"palimpsest.outcomes." + HashID(strings.Repeat("x", 257)): OutcomeAnnounced{Outcome: Outcome{CorrelationID: strings.Repeat("x", 257)}},
	} {
		if got := Subject(p); got != want {
			t.Errorf("%T: %s, want %s", p, got, want)
		}
		if _, _, err := ParseSubject(want); err != nil {
			t.Error(err)
		}
	}
	episode := EpisodeRecorded{Scope: full, Mode: ModeIncognito}
	if Subject(&episode) != Subject(episode) {
		t.Error("a pointer to a payload goes elsewhere")
	}
}

// TestSubjectsWithoutClass are those of the version before, which may lie in a
// stream still. A project may be called like a class.
func TestSubjectsWithoutClass(t *testing.T) {
	t.Parallel()
	for subject, want := range map[string]scope.Scope{
		"palimpsest.ticks.default.alice._._":          {Project: "default", User: "alice"},
		"palimpsest.candidates.rules.alice._._":       {Project: "rules", User: "alice"},
		"palimpsest.deltas.model.model._._":           {Project: "model", User: "model"},
		"palimpsest.deltas.rules.model.model._._":     {Project: "model", User: "model"},
		"palimpsest.candidates.model.rules.rules._._": {Project: "rules", User: "rules"},
	} {
		if _, got, err := ParseSubject(subject); err != nil || got != want {
			t.Errorf("%s: %v, %v", subject, got, err)
		}
	}
}

func TestParseSubjectRefuses(t *testing.T) {
	t.Parallel()
	for subject, field := range map[string]string{
		"":                                  "subject",
		"palimpsest":                        "subject",
		"palimpsest.episodes":               "subject",
		"palimpsest.unknown.a.b.c.d":        "subject",
		"palimpsest.outcomes.":              "subject",
		"palimpsest.outcomes.a.b":           "subject",
		"palimpsest.episodes.16.p.u.a.s":    "partition",
		"palimpsest.episodes.03.p.u.a.s":    "partition",
		"palimpsest.episodes.-1.p.u.a.s":    "partition",
		"palimpsest.episodes.x.p.u.a.s":     "partition",
		"palimpsest.episodes.p.u.a":         "scope",
		"palimpsest.episodes.1.p.u.a.s.t":   "scope",
		"palimpsest.stored.1.p.u.a._":       "scope",
		"palimpsest.ticks.p.U._._":          "user",
		"palimpsest.ticks.rules.p.U._._":    "user",
		"palimpsest.ticks.other.p.u._._":    "class",
		"palimpsest.deltas.rules.p.u.a._._": "scope",
		"palimpsest.deadletter.x.p.u.a.S":   "session",
		"palimpsest.deadletter.x":           "scope",
		"palimpsest.episodes.p.u.%2a._":     "agent",
		"palimpsest.episodes.p.u..s":        "agent",
		"PALIMPSEST.episodes.p.u.a.s":       "subject",
		"palimpsest.episodes.p.u.a.*":       "session",
		"palimpsest.episodes.p.u.a.>":       "session",
		"palimpsest.episodes.p.u.a.s\u00e9": "session",
	} {
		_, _, err := ParseSubject(subject)
		if got := refusal(t, err).Field; got != field {
			t.Errorf("%q: refused %s, want %s", subject, got, field)
		}
	}
}

func TestSkip(t *testing.T) {
	t.Parallel()
	batch := Batch{Header: Header{Scope: alice().Fact(), Incarnation: 3}, Rule: "turn", Range: Range{From: 1, To: 2}, Cause: CauseEvery, Attempt: 2}
	ends := []SessionEnd{{Session: "s-1", LastOrdinal: 2, Cause: EndIdle, At: arrival()}}
	refs := []EpisodeRef{{ID: "e-2", Ordinal: 2}}
	want := CandidatesExtracted{Batch: batch, SessionEnds: ends, Episodes: refs}
	want.Skipped = "poison"
	if err := want.Validate(); err != nil {
		t.Fatal(err)
	}
	candidates := []Candidate{sampleCandidate()}
	for _, p := range []Skippable{
		CandidatesExtracted{Batch: batch, SessionEnds: ends, Episodes: refs, Candidates: candidates},
		DeltasDecided{Batch: batch, SessionEnds: ends, Episodes: refs, Candidates: candidates, Deltas: sampleDeltas()},
	} {
		if diff := cmp.Diff(Payload(want), p.Skip("poison")); diff != "" {
			t.Errorf("%T (-want +got):\n%s", p, diff)
		}
	}
	want.Episodes = nil
	if diff := cmp.Diff(Payload(want), TickIssued{Batch: batch, SessionEnds: ends}.Skip("poison")); diff != "" {
		t.Errorf("tick (-want +got):\n%s", diff)
	}
	ref := CommandRef{RequestID: "r-1", Op: OpDelete}
	command := DeltasDecided{Batch: Batch{Header: batch.Header, Rule: RuleCommand, Cause: CauseRequest, Skipped: "poison"}, Command: &ref}
	if err := command.Validate(); err != nil {
		t.Fatal(err)
	}
	asked := CommandRequested{Header: batch.Header, CommandRef: CommandRef{RequestID: "r-1", Op: OpDelete, IfMatch: map[string]uint64{"f-1": 3}}, FactID: "f-1"}
	for _, p := range []Skippable{asked, DeltasDecided{Batch: batch, Command: &asked.CommandRef, Asked: &asked, Deltas: sampleDeltas()}} {
		if diff := cmp.Diff(Payload(command), p.Skip("poison")); diff != "" {
			t.Errorf("%T of a command (-want +got):\n%s", p, diff)
		}
	}
	if asked.IfMatch["f-1"] != 3 {
		t.Error("the command itself was changed")
	}
	batch.Cause = CauseLate
	if p := (TickIssued{Batch: batch}).Skip("poison"); p != nil {
		t.Errorf("a late batch is followed by %v", p)
	}
}

func TestBuriedWithoutAScope(t *testing.T) {
	t.Parallel()
	letter := MessageBuried{Service: "ingest", Code: CodeMalformed, Reason: "is not JSON", Data: []byte{0xff, 0}, BuriedAt: arrival(),
		Headers: map[string][]string{"x\xff": {"a\xfe"}, "x\xfe": {"b"}}}
	subject, head, body, err := Encode(Meta{ID: "l-1", Source: "palimpsest/ingest"}, letter)
	if err != nil {
		t.Fatal(err)
	}
	meta, data, err := Decode(Raw{Subject: subject, Header: head, Body: body})
	if err != nil {
		t.Fatal(err)
	}
	e, err := DecodeData[MessageBuried](meta, data)
	if err != nil {
		t.Fatal(err)
	}
	letter.Headers = map[string][]string{`"x\xff"`: {`"a\xfe"`}, `"x\xfe"`: {"b"}}
	if diff := cmp.Diff(letter, e.Data); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestEncodeRefuses(t *testing.T) {
	t.Parallel()
	episode := EpisodeRecorded{Scope: alice(), Role: RoleUser, Content: "hello"}
	for field, err := range map[string]error{
		"id":      encodeError(Meta{Source: "/x"}, episode),
		"id ":     encodeError(Meta{ID: "a\r\nb: c", Source: "/x"}, episode),
		"source":  encodeError(Meta{ID: "a"}, episode),
		"role":    encodeError(Meta{ID: "a", Source: "/x"}, EpisodeRecorded{Scope: alice()}),
		"scope":   encodeError(Meta{ID: "a", Source: "/x"}, EpisodeRecorded{Scope: scope.Scope{Project: "p"}, Role: RoleUser, Content: "x"}),
		"project": encodeError(Meta{ID: "a", Source: "/x"}, EpisodeRecorded{Role: RoleUser, Content: "x"}),
		"user":    encodeError(Meta{ID: "a", Source: "/x"}, EpisodeRecorded{Scope: scope.Scope{Project: "p", User: "\n"}, Role: RoleUser, Content: "x"}),
	} {
		if got := refusal(t, err).Field; got != trim(field) {
			t.Errorf("refused %s, want %s", got, field)
		}
	}
}

func encodeError(meta Meta, p Payload) error {
	_, _, _, err := Encode(meta, p)
	return err
}
