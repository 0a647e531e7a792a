package events

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/cloudevents/sdk-go/v2/event"
	"github.com/google/go-cmp/cmp"
)

// MarshalEffect is json.Marshal, but for the order.
func TestMarshalEffect(t *testing.T) {
	t.Parallel()
	for _, s := range samples() {
		e, ok := s.payload.(EffectCommitted)
		if !ok {
			continue
		}
		for _, e := range []EffectCommitted{e, {Header: e.Header, Revision: 1}} {
			var want, got any
			raw, err := json.Marshal(e)
			if err != nil || json.Unmarshal(raw, &want) != nil {
				t.Fatal(err)
			}
			fast, err := MarshalEffect(e)
			if err != nil || json.Unmarshal(fast, &got) != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		}
	}
	if _, err := MarshalEffect(EffectCommitted{Applied: []Applied{{}}}); err == nil {
		t.Error("an effect with a delta of nothing is written")
	}
}

// Events in structured mode round-trip, here and through the CloudEvents SDK.
func TestEncodeStructured(t *testing.T) {
	t.Parallel()
	for _, s := range samples() {
		subject, _, body, err := Encode(s.meta, s.payload)
		if err != nil {
			t.Fatal(err)
		}
		if s.payload.Kind() == KindMessageBuried || s.payload.Kind() == KindOutcomeAnnounced {
			continue // whose subjects name no whole scope
		}
		meta := s.meta
		meta.Kind, meta.Scope, meta.Sequence = s.payload.Kind(), s.payload.Owner(), 42
		text, err := EncodeStructured(meta, body)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.ContainsRune(text, '\n') {
			t.Errorf("%s takes several lines", meta.Kind)
		}
		var standard event.Event
		if err := json.Unmarshal(text, &standard); err != nil || standard.Validate() != nil {
			t.Errorf("%s: %v, %v", meta.Kind, err, standard.Validate())
		}
		if standard.Extensions()["sequence"] != "42" {
			t.Errorf("extensions %v", standard.Extensions())
		}
		got, data, err := Decode(Raw{Subject: subject, Header: headers("Content-Type", "application/cloudevents+json"), Body: text, Sequence: 42})
		if err != nil {
			t.Fatalf("%s: %v", meta.Kind, err)
		}
		want := meta
		want.Time = want.Time.UTC()
		if want.Time.IsZero() {
			want.Time = got.Time
		}
		if want.CorrelationID == "" {
			want.CorrelationID = got.CorrelationID // an episode begins its own
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", meta.Kind, diff)
		}
		if !bytes.Equal(data, body) {
			t.Errorf("%s carries %s, want %s", meta.Kind, data, body)
		}
	}
	if _, err := EncodeStructured(Meta{ID: "1", Source: "x"}, []byte("{}")); err == nil {
		t.Error("an event of no scope is written")
	}
	if _, err := EncodeStructured(Meta{ID: "1", Source: "x", Scope: alice()}, []byte("{")); err == nil {
		t.Error("data that is no JSON is written")
	}
}
