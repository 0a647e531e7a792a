package events

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"palimpsest/pkg/scope"
)

// sample is one message of a kind with every member in use.
type sample struct {
	meta    Meta
	payload Payload
	decoded func(t *testing.T, have goldenFile)
	// reread decodes data of this kind, encodes the result and decodes it again.
	reread func(t *testing.T, data []byte)
}

func sampleOf[P Payload](p P) sample {
	meta := Meta{
		ID: HashID("sample", string(p.Kind())), Source: "palimpsest/test", Kind: p.Kind(), Scope: p.Owner(),
		Time: arrival(), CorrelationID: "request-1", CausationID: "message-1",
		Traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
	}
	return sample{meta: meta, payload: p, decoded: func(t *testing.T, have goldenFile) {
		t.Helper()
		got, data, err := Decode(Raw{Subject: have.Subject, Header: have.Headers, Body: have.Body, Time: arrival()})
		if err != nil {
			t.Fatal(err)
		}
		want := Event[P]{Meta: meta, Data: p}
		want.Arrived = arrival()
		e, err := DecodeData[P](got, data)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, e, comparable()); diff != "" {
			t.Errorf("decoded (-want +got):\n%s", diff)
		}
	}, reread: func(t *testing.T, data []byte) {
		t.Helper()
		first, err := DecodeData[P](meta, data)
		if err != nil {
			refusal(t, err)
			return
		}
		text, err := json.Marshal(first.Data)
		if err != nil {
			return // an instant that JSON cannot write
		}
		second, err := DecodeData[P](meta, text)
		if err != nil {
			t.Fatalf("read what was written: %v\n%s", err, text)
		}
		if twice := must(json.Marshal(second.Data)); string(twice) != string(text) {
			t.Fatalf("%s became %s", text, twice)
		}
	}}
}

// comparable lets go-cmp look into deltas and compare instants as such.
func comparable() cmp.Options {
	return cmp.Options{cmp.AllowUnexported(Add{}, Update{}, Delete{}, Noop{}), cmpopts.EquateApproxTime(0), cmpopts.EquateEmpty()}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func samples() []sample {
	full := scope.Scope{Project: "acme", User: "Ada.L", Agent: "helper", Session: "s/1"}
	head := Header{Scope: full.Fact(), Incarnation: 2}
	batch := Batch{Header: head, Rule: "sleep", Class: ClassModel, Range: Range{From: 3, To: 5}, Cause: CauseSessionEnd, Attempt: 1, Extractor: "rules@1"}
	batch.Spent = []Spent{{Request: "0123456789abcdef", Model: "m-1", Calls: 2, InputTokens: 900, OutputTokens: 40, Dollars: 0.001}}
	ends := []SessionEnd{{Session: "s/1", LastOrdinal: 5, Cause: EndIdle, At: arrival()}}
	refs := []EpisodeRef{{ID: "e-4", Ordinal: 4, Session: "s/1", CorrelationID: "request-1"}}
	skipped := batch
	skipped.Skipped = "poison"
	watermark, infer := uint64(5), true
	command := CommandRef{RequestID: "request-1", Op: OpCorrect, IfMatch: map[string]uint64{"f-1": 3}, Rating: &Rating{Value: RatingNegative, EpisodeID: "e-4", Reason: "it is old"}}
	candidate := sampleCandidate()
	outcome := Outcome{
		CorrelationID: "request-1", Rule: "sleep", EpisodeIDs: []string{"e-4"}, Revision: 9, Skipped: "poison", Conflict: "f-1@4",
		Results: []Result{{Event: ChangeUpdate, DeltaID: "d-2", FactID: "f-1", Revision: 4, Memory: "new", OldMemory: "old", Reason: ReasonRefinement}},
	}
	return []sample{
		sampleOf(EpisodeRecorded{
			Scope: full, Role: RoleUser, Content: "I moved to Lyon <3 & \"love\" it 🎈",
			Timestamp:  Timestamp{time.Date(2026, 3, 4, 6, 6, 7, 0, time.FixedZone("", 3600))},
			SourceNode: "phone", Metadata: map[string]any{MetaIntent: "update", MetaReplaces: []any{"f-1"}, "channel": "mail", "n": 1.5},
			Mode: ModeBackfill, Infer: &infer, Request: true, Prompt: "places only",
		}),
		sampleOf(SessionEnded{Scope: full, Cause: EndDisconnect, Timestamp: Timestamp{arrival()}, LastOrdinal: 5}),
		sampleOf(EpisodeStored{Header: head, EpisodeID: "e-4", LastOrdinal: 5, StoredAt: arrival()}),
		sampleOf(TickIssued{Batch: batch, SessionEnds: ends, Prompt: "places only"}),
		sampleOf(CandidatesExtracted{Batch: skipped, SessionEnds: ends, Episodes: refs, Candidates: []Candidate{candidate}}),
		sampleOf(CommandRequested{
			Header: head, CommandRef: command, Actor: "api:key", FactID: "f-1", HoldID: "c-0", Candidate: &candidate,
			Session: "s/1", Reason: "was wrong", At: arrival(),
		}),
		sampleOf(DeltasDecided{
			Batch: batch, Basis: 8, BasisSequence: 61, Footprint: &Footprint{
				Facts: map[string]uint64{"f-1": 3, "f-4": 0}, Hashes: []string{"d41d8cd98f00b204e9800998ecf8427e"},
				Keys: []Triple{{Subject: "user", Predicate: "lives_in"}, {Subject: "user", Predicate: "likes", Object: "tea"}},
			}, SessionEnds: ends, Episodes: refs, Deltas: sampleDeltas(),
			Mentions: map[string][]Mention{"d-1": candidate.Entities}, Candidates: []Candidate{candidate},
		}),
		sampleOf(EffectCommitted{
			Header: head, Revision: 9, Rule: "sleep", Range: &batch.Range, Cause: batch.Cause, Attempt: 1, Command: &command, Extractor: batch.Extractor,
			Spent: []Spent{{Model: "m-1", Calls: 2, InputTokens: 900, OutputTokens: 40, Dollars: 0.001}}, Watermark: &watermark, Skipped: "poison", CommittedAt: arrival(),
			Applied: []Applied{
				{Delta: sampleDeltas()[0], FactID: "f-2", After: "f-2@1"},
				{Delta: sampleDeltas()[1], FactID: "f-1", Before: "f-1@3", After: "f-1@4"},
			},
			Facts: []Fact{sampleFact()}, Versions: []Fact{sampleFact()}, Entities: []Entity{sampleEntity()},
			Edges: []Edge{sampleEdge()}, Holds: []Hold{sampleHold()}, Released: []string{"c-0"},
			SessionEnds: ends, Outcomes: []Outcome{outcome},
			Tally: Tally{Episodes: 2, Candidates: 3, Decided: 1, Held: 1, Dropped: 1, Skipped: 1,
				Settled: []Settlement{{Rule: "turn", Decided: 1, Dropped: 2}}},
		}),
		sampleOf(UserErased{Header: head, Erasure: "r-1", Until: 61, ErasedAt: arrival()}),
		sampleOf(FactReturned{Header: head, FactIDs: []string{"f-1"}, At: arrival()}),
		sampleOf(OutcomeAnnounced{Header: head, Outcome: outcome}),
		sampleOf(MessageBuried{
			Scope: full.Fact(), Service: "ingest", Stream: "EPISODES", Sequence: 7, Subject: EpisodeSubject(full),
			MessageKind: KindEpisodeRecorded, Code: CodeInvalidField, Field: "role", Reason: "is required", Causes: []string{"decode", "role"},
			Attempts: 1, Headers: map[string][]string{"ce-id": {"e-4"}}, Data: []byte("{}"), Truncated: true, Size: 9000, SHA256: "ab", BuriedAt: arrival(),
		}),
	}
}

func sampleCandidate() Candidate {
	at, until := arrival(), arrival().Add(time.Hour)
	return Candidate{
		ID: "c-1", Kind: FactSemantic, Category: "biography", Subject: "user", Predicate: "lives_in", Object: "Lyon",
		Text: "Ada lives in Lyon.", EvidenceQuote: "I moved to Lyon", Confidence: 0.9, Explicit: true,
		Sensitivity: SensitivityPersonal, Cardinality: One, Negated: true, Hedged: true, Transient: true, Unsafe: true,
		Retracts:         []Triple{{Subject: "user", Predicate: "lives_in", Object: "Paris"}},
		SourceEpisodeIDs: []string{"e-4"}, Ordinal: 4, SessionIDs: []string{"s/1"}, SourceRole: RoleUser, EventTime: at,
		ValidFrom: &at, ValidUntil: &until, Entities: []Mention{{Name: "Lyon", Type: EntityPlace, Aliases: []string{"Lugdunum"}}},
		Metadata: map[string]any{"channel": "mail"}, Extractor: "rules@1", RuleID: "moved", Intent: "update", Replaces: []string{"f-1"},
	}
}

func sampleFact() Fact {
	until := arrival().Add(time.Hour)
	return Fact{
		ID: "f-1", Revision: 4, Kind: FactSemantic, Category: "biography", Subject: "user", Predicate: "lives_in", Object: "Lyon",
		Text: "Ada lives in Lyon.", Hash: "d41d8cd98f00b204e9800998ecf8427e", Cardinality: One, Metadata: map[string]any{"channel": "mail"},
		Sensitivity: SensitivityPersonal, Confidence: 0.9, DecayRate: 0.1, Confirmed: true, EventTime: arrival(), CreatedAt: arrival(),
		UpdatedAt: arrival(), ValidFrom: arrival(), ValidUntil: &until, ArchivedAt: &until, OwnEnd: &until, RestoredAt: &until, SourceType: SourceExtraction, SourceRole: RoleUser,
		SessionIDs: []string{"s/1"}, SourceEpisodeIDs: []string{"e-4"}, EvidenceQuote: "I moved to Lyon", RuleID: "moved",
		Supersedes: []string{"f-1@3"}, SupersededBy: "f-1@5", EntityIDs: []string{"n-1"},
	}
}

func sampleEntity() Entity {
	return Entity{
		ID: "n-1", CanonicalName: "Lyon", Type: EntityPlace, Aliases: []string{"Lugdunum"}, Summary: "a city", FirstSeen: arrival(),
		LastUpdated: arrival(), MentionCount: 2, Attributes: map[string]any{"country": "FR"},
	}
}

func sampleEdge() Edge {
	until := arrival()
	return Edge{
		ID: "g-1", SourceID: "n-0", TargetID: "n-1", Type: EdgeRelation, Predicate: "lives_in", Weight: 1, Confidence: 1,
		Evidence: []string{"f-1"}, ValidFrom: arrival(), ValidUntil: &until, CreatedAt: arrival(),
	}
}

func sampleHold() Hold {
	due := arrival().Add(time.Hour)
	return Hold{
		ID: "c-1", Candidate: sampleCandidate(), HeldAt: arrival(), Why: "churn", Rule: "turn",
		FactID: "f-1", Count: 3, Since: arrival(), Due: &due,
	}
}

func provenance(id string, reason Reason) Provenance {
	return Provenance{
		ID: id, CandidateID: "c-1", SourceEpisodeIDs: []string{"e-4"}, RequestID: "request-1", PromotionTS: arrival(),
		RuleID: "moved", Confidence: 0.9, Reason: reason, DecidedBy: "rules@1",
	}
}

func sampleDeltas() Deltas {
	fact, entity, edge, hold := sampleFact(), sampleEntity(), sampleEdge(), sampleHold()
	return Deltas{
		must(NewAdd(provenance("d-1", ReasonNew), FactPayload{Fact: &fact})),
		must(NewUpdate(provenance("d-2", ReasonRefinement), FactPayload{Entity: &entity}, []string{"f-1", "f-9"})),
		must(NewDelete(provenance("d-3", ReasonNegation), []string{"f-3"})),
		must(NewNoop(provenance("d-4", ReasonDuplicate), "f-4")),
		must(NewAdd(provenance("d-5", ReasonNew), FactPayload{Edge: &edge})),
		must(NewAdd(provenance("d-6", ReasonHeld), FactPayload{Hold: &hold})),
	}
}
