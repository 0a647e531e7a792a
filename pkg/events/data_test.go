package events

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestDecodeDataNamesTheField(t *testing.T) {
	t.Parallel()
	nested := strings.Repeat(`{"a":`, 40) + "1" + strings.Repeat("}", 40)
	for body, want := range map[string]string{
		``:                                "data: is empty",
		`  `:                              "data: is empty",
		`{"content":"a"`:                  "data: is not JSON: unexpected end of JSON input at byte 14",
		`{"content":"a"} x`:               "data: is not JSON: invalid character 'x' after top-level value at byte 17",
		"{\"content\":\"\xff\"}":          "data: is not valid UTF-8",
		`[]`:                              "data: must be an object",
		`"text"`:                          "data: must be an object",
		`null`:                            "role: is required: user, assistant, system or tool",
		`{"role":"user","content":1}`:     "content: must be a string",
		`{"role":"user","content":null}`:  "content: is required: 1 byte or more of text",
		`{"role":["user"],"content":"a"}`: "role: must be a string",
		`{"role":"bot","content":"a"}`:    `role: "bot" is none of user, assistant, system, tool`,
		`{"role":"user","content":"a","metadata":[]}`:                            "metadata: must be an object",
		`{"role":"user","content":"a","metadata":{"intent":"merge"}}`:            "metadata.intent: merge is none of noop, update, delete",
		`{"role":"user","content":"a","metadata":{"a":1,"b":2,"a":3}}`:           "metadata.a: is given twice",
		`{"role":"user","content":"a","metadata":{"a":1,"\u0061":3}}`:            "metadata.a: is given twice",
		`{"role":"user","content":"a","metadata":{"x":[1,{"y.z":{"k":1e400}}]}}`: `metadata.x[1]["y.z"].k: 1e400 is out of range`,
		`{"role":"user","content":"a","metadata":` + nested + `}`:                "metadata" + strings.Repeat(".a", 31) + ": nests too deep",
		`{"role":"user","content":"a","content":"b"}`:                            "content: is given twice",
		`{"role":"user","content":"\ud800"}`:                                     "content: holds an unpaired surrogate",
		`{"role":"user","content":"\ud800\u0061"}`:                               "content: holds an unpaired surrogate",
		`{"role":"user","content":"\udc00 "}`:                                    "content: holds an unpaired surrogate",
		`{"role":"user","content":"a","timestamp":"soon"}`:                       `timestamp: "soon" is not RFC 3339`,
		`{"role":"user","content":"a","timestamp":true}`:                         "timestamp: must be RFC 3339 text or unix seconds",
		`{"role":"user","content":"a","timestamp":1e300}`:                        "timestamp: 1e+300 is outside the years 1 to 9999",
		`{"role":"user","content":"a","infer":"yes"}`:                            "infer: must be true or false",
		`{"role":"user","content":"a","request":1}`:                              "request: must be true or false",
	} {
		meta := Meta{Kind: KindEpisodeRecorded, Scope: alice()}
		_, err := DecodeData[EpisodeRecorded](meta, []byte(body))
		if got := refusal(t, err).Error(); got != want {
			t.Errorf("%s:\n got %s\nwant %s", clip(body), got, want)
		}
	}
}

func TestDecodeDataNamesTheFieldOfServices(t *testing.T) {
	t.Parallel()
	batch := `"scope":{"project":"default","user":"alice"},"incarnation":0,"rule":"turn","range":{"from":0,"to":1},"cause":"every","attempt":0`
	delta := `{"kind":"noop","id":"d","source_episode_ids":["e"],"promotion_ts":"2026-01-02T03:04:05Z","rule_id":"r","confidence":0,"reason":"transient","decided_by":"rules@1"}`
	without := func(field string) string {
		var m map[string]any
		if err := json.Unmarshal([]byte(delta), &m); err != nil {
			t.Fatal(err)
		}
		delete(m, field)
		out, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	for body, want := range map[string]string{
		`{` + batch + `,"basis":-1}`:                                 "basis: -1 is no whole number from 0 of 64 bits",
		`{` + batch + `,"basis":1.0}`:                                "basis: 1.0 is no whole number from 0 of 64 bits",
		`{` + batch + `,"candidates":[{"event_time":"x"}]}`:          `candidates[0].event_time: "x" is not RFC 3339`,
		`{` + batch + `,"candidates":[{"confidence":"x"}]}`:          "candidates[0].confidence: must be a number",
		`{` + batch + `,"deltas":{}}`:                                "deltas: must be an array",
		`{` + batch + `,"deltas":[` + delta + `,{}]}`:                `deltas[1].kind: "" is none of add, update, delete, noop`,
		`{` + batch + `,"deltas":[` + without("rule_id") + `]}`:      "deltas[0].rule_id: is required",
		`{` + batch + `,"deltas":[` + without("confidence") + `]}`:   "deltas[0].confidence: is required",
		`{` + batch + `,"deltas":[` + without("promotion_ts") + `]}`: "deltas[0].promotion_ts: is required",
		`{` + strings.Replace(batch, "alice", "bob", 1) + `}`:        "scope: is not the scope that the message was published to",
	} {
		meta := Meta{Kind: KindDeltasDecided, Scope: alice().Fact()}
		meta.Scope.Agent = ""
		_, err := DecodeData[DeltasDecided](meta, []byte(body))
		if got := refusal(t, err).Error(); got != want {
			t.Errorf("%s:\n got %s\nwant %s", body, got, want)
		}
	}
}

func TestDecodeDataKnowsMembersByTheirExactName(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		`{"role":"user","content":"a","Content":"b"}`,
		`{"role":"user","content":"a","\u0043ontent" : "b"}`,
		`{"ROLE":"system","CONTENT":1,"role":"user","content":"a","METADATA":[]}`,
		`{"role":"user","content":"a","other":{"content":"b"}}`,
	} {
		e, err := DecodeData[EpisodeRecorded](Meta{Kind: KindEpisodeRecorded, Scope: alice()}, []byte(body))
		if err != nil || e.Data.Content != "a" || e.Data.Role != RoleUser || e.Data.Metadata != nil {
			t.Errorf("%s: %+v, %v", body, e.Data, err)
		}
	}
}

func TestDecodeDataRefusesAnotherKind(t *testing.T) {
	t.Parallel()
	_, err := DecodeData[EpisodeRecorded](Meta{Kind: KindTickIssued, Scope: alice()}, []byte(hello))
	if refusal(t, err).Field != "type" {
		t.Error(err)
	}
}

// TestWhatIsAcceptedStaysReadable: the deepest metadata that an episode may
// bring can be read again from where it ends up deepest, a held candidate.
func TestWhatIsAcceptedStaysReadable(t *testing.T) {
	t.Parallel()
	deepest := strings.Repeat("[", MaxDepth-2) + strings.Repeat("]", MaxDepth-2)
	body := `{"role":"user","content":"a","metadata":{"m":` + deepest + `}}`
	episode, err := DecodeData[EpisodeRecorded](Meta{Kind: KindEpisodeRecorded, Scope: alice()}, []byte(body))
	if err != nil {
		t.Fatal(err)
	}
	hold := sampleHold()
	hold.Candidate.Metadata = episode.Data.Metadata
	fact := sampleFact()
	fact.Metadata = episode.Data.Metadata
	effect := EffectCommitted{
		Header: Header{Scope: alice().Fact()}, Revision: 1, Rule: "turn", CommittedAt: arrival(),
		Holds:   []Hold{hold},
		Applied: []Applied{{Delta: must(NewAdd(provenance("d", ReasonHeld), FactPayload{Hold: &hold}))}},
		Facts:   []Fact{fact},
	}
	subject, head, data, err := Encode(Meta{ID: "1", Source: "/x"}, effect)
	if err != nil {
		t.Fatal(err)
	}
	meta, data, err := Decode(Raw{Subject: subject, Header: head, Body: data})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := DecodeData[EffectCommitted](meta, data); err != nil {
		t.Error(err)
	}
}

func TestPlainRole(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{}`:                        `{"role":"user"}`,
		` { } `:                     `{"role":"user"} `,
		`{"content":"a"}`:           `{"role":"user","content":"a"}`,
		`{"Role":"tool"}`:           `{"role":"user","Role":"tool"}`,
		`{"role":null}`:             `{"role":null}`,
		`{"role":"tool"}`:           `{"role":"tool"}`,
		`[]`:                        `[]`,
		`null`:                      `null`,
		`hello`:                     `hello`,
		``:                          ``,
		`{"r\u006fle":"assistant"}`: `{"r\u006fle":"assistant"}`,
	} {
		if got := string(withRole([]byte(body))); got != want {
			t.Errorf("%s: %s, want %s", body, got, want)
		}
	}
}
