package events

import (
	"encoding/json"
	"maps"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestDeltaLacksAField(t *testing.T) {
	t.Parallel()
	fact := sampleFact()
	payload := FactPayload{Fact: &fact}
	replaces := []string{"f-1"}
	for field, spoil := range map[string]func(*Provenance){
		"id":                 func(p *Provenance) { p.ID = "" },
		"source_episode_ids": func(p *Provenance) { p.SourceEpisodeIDs, p.RequestID = nil, "" },
		"promotion_ts":       func(p *Provenance) { p.PromotionTS = time.Time{} },
		"rule_id":            func(p *Provenance) { p.RuleID = "" },
		"confidence":         func(p *Provenance) { p.Confidence = math.NaN() },
		"reason":             func(p *Provenance) { p.Reason = "" },
		"decided_by":         func(p *Provenance) { p.DecidedBy = "" },
	} {
		t.Run(field, func(t *testing.T) {
			t.Parallel()
			p := provenance("d", ReasonNew)
			spoil(&p)
			_, add := NewAdd(p, payload)
			_, upd := NewUpdate(p, payload, replaces)
			_, del := NewDelete(p, replaces)
			_, noop := NewNoop(p, "")
			for _, err := range []error{add, upd, del, noop} {
				if got := refusal(t, err).Field; got != field {
					t.Errorf("refused %q, want %q", got, field)
				}
			}
		})
	}
	p := provenance("d", ReasonNew)
	p.Confidence = 1.01
	for field, err := range map[string]error{
		"confidence":         second(NewNoop(p, "")),
		"fact_payload":       second(NewAdd(provenance("d", ReasonNew), FactPayload{})),
		"fact_payload ":      second(NewUpdate(provenance("d", ReasonNew), FactPayload{Fact: &fact, Hold: &Hold{}}, replaces)),
		"replaces":           second(NewUpdate(provenance("d", ReasonNew), payload, nil)),
		"replaces ":          second(NewDelete(provenance("d", ReasonNew), nil)),
		"replaces  ":         second(NewDelete(provenance("d", ReasonNew), []string{"f", ""})),
		"source_episode_ids": second(NewNoop(Provenance{ID: "d", SourceEpisodeIDs: []string{""}}, "")),
	} {
		if got, want := refusal(t, err).Field, trim(field); got != want {
			t.Errorf("refused %q, want %q", got, want)
		}
	}
}

func second[T any](_ T, err error) error { return err }

func trim(s string) string {
	for s[len(s)-1] == ' ' {
		s = s[:len(s)-1]
	}
	return s
}

func TestDecodedDeltaLacksAField(t *testing.T) {
	t.Parallel()
	text, err := json.Marshal(sampleDeltas())
	if err != nil {
		t.Fatal(err)
	}
	var whole []map[string]any
	if err := json.Unmarshal(text, &whole); err != nil {
		t.Fatal(err)
	}
	required := map[string][]string{
		"add":    {"kind", "id", "promotion_ts", "rule_id", "confidence", "reason", "decided_by", "fact_payload"},
		"update": {"kind", "id", "promotion_ts", "rule_id", "confidence", "reason", "decided_by", "fact_payload", "replaces"},
		"delete": {"kind", "id", "promotion_ts", "rule_id", "confidence", "reason", "decided_by", "replaces"},
		"noop":   {"kind", "id", "promotion_ts", "rule_id", "confidence", "reason", "decided_by"},
	}
	for _, delta := range whole {
		for _, field := range required[delta["kind"].(string)] { //nolint:forcetypeassert // a sample
			for _, gone := range []any{nil, "absent"} {
				broken := maps.Clone(delta)
				broken[field] = gone
				if gone != nil {
					delete(broken, field)
				}
				refuseDelta(t, broken, field)
			}
		}
		broken := maps.Clone(delta)
		delete(broken, "source_episode_ids")
		delete(broken, "request_id")
		refuseDelta(t, broken, "source_episode_ids")
	}
	spare := maps.Clone(whole[0])
	spare["replaces"] = []string{"f-1"}
	refuseDelta(t, spare, "replaces")
	spare = maps.Clone(whole[2])
	spare["fact_payload"] = whole[0]["fact_payload"]
	refuseDelta(t, spare, "fact_payload")
	spare = maps.Clone(whole[2])
	spare["about"] = "f-1"
	refuseDelta(t, spare, "about")
}

// refuseDelta expects the delta to be refused for field, wherever it
// stands.
func refuseDelta(t *testing.T, broken map[string]any, field string) {
	t.Helper()
	one := must(json.Marshal(broken))
	var ds Deltas
	err := json.Unmarshal([]byte("["+string(one)+"]"), &ds)
	if got := refusal(t, err).Field; got != "[0]."+field {
		t.Errorf("refused %q, want %q of %s", got, field, one)
	}
	var a Applied
	err = json.Unmarshal([]byte(`{"delta":`+string(one)+`}`), &a)
	if got := refusal(t, err).Field; got != "delta."+field {
		t.Errorf("refused %q, want %q of %s", got, field, one)
	}
	var e struct {
		Applied []Applied `json:"applied"`
	}
	err = Unmarshal([]byte(`{"applied":[{"delta":`+string(one)+`}]}`), &e)
	if got := refusal(t, err).Field; got != "applied[0].delta."+field {
		t.Errorf("refused %q, want %q of %s", got, field, one)
	}
}

func TestDeltasRoundTrip(t *testing.T) {
	t.Parallel()
	text := must(json.Marshal(sampleDeltas()))
	var got Deltas
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(sampleDeltas(), got, comparable()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := json.Marshal(Deltas{nil}); err == nil {
		t.Error("a nil delta was written")
	}
	if _, err := json.Marshal(Applied{}); err == nil {
		t.Error("an Applied without a delta was written")
	}
}
