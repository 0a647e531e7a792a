package events

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func FuzzDecode(f *testing.F) {
	f.Add(EpisodeSubject(alice()), "e-1", "app://chat", "application/json", "", []byte(hello))
	f.Add(EpisodeSubject(alice()), "", "", "", "", []byte(`{"content":"hello","metadata":{"a":[1,{"b":null}]}}`))
	f.Add(EpisodeSubject(alice()), "", "", "application/cloudevents+json", "",
		[]byte(`{"specversion":"1.0","type":"palimpsest.episode.recorded.v1","source":"/x","id":"1","data":`+hello+`}`))
	f.Add("palimpsest.episodes.3.default.alice._.%2F", "%ff", "a b", "text/plain; charset", "2026-01-02T03:04:05Z", []byte(`{"content":"\ud800"}`))
	f.Add(EpisodeSubject(alice()), `"a\"`, "%", `;"`, "x", []byte(`{"role":`))
	f.Fuzz(func(t *testing.T, subject, id, source, contentType, at string, body []byte) {
		head := map[string][]string{}
		for name, value := range map[string]string{"ce-id": id, "ce-source": source, "Content-Type": contentType, "ce-time": at} {
			if value != "" {
				head[name] = []string{value}
			}
		}
		if id != "" {
			head["ce-specversion"], head["ce-type"] = []string{"1.0"}, []string{string(KindEpisodeRecorded)}
		}
		raw := Raw{Subject: subject, Header: head, Body: body, StreamID: "s", Sequence: 1, Time: arrival()}
		meta, data, err := Decode(raw)
		if err != nil {
			refusal(t, err)
			return
		}
		e, err := DecodeData[EpisodeRecorded](meta, data)
		if err != nil {
			refusal(t, err)
			return
		}
		again(t, e)
	})
}

// again writes what was accepted and expects it to be accepted as the same.
func again(t *testing.T, e Event[EpisodeRecorded]) {
	t.Helper()
	if e.Data.Mode == ModeIncognito {
		return // goes to a subject of its own
	}
	subject, head, body, err := Encode(e.Meta, e.Data)
	if err != nil {
		t.Fatalf("encode what was decoded: %v", err)
	}
	meta, data, err := Decode(Raw{Subject: subject, Header: head, Body: body, Time: e.Arrived})
	if err != nil {
		t.Fatalf("decode what was encoded: %v", err)
	}
	got, err := DecodeData[EpisodeRecorded](meta, data)
	if err != nil {
		t.Fatalf("decode what was encoded: %v", err)
	}
	got.Sequence, got.Delivery = e.Sequence, e.Delivery
	if diff := cmp.Diff(e, got, comparable()); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
}

// Every kind: accepted data round-trips.
func FuzzDecodeData(f *testing.F) {
	kinds := samples()
	for i, s := range kinds {
		_, _, body, err := Encode(s.meta, s.payload)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(uint8(i), body)
	}
	f.Fuzz(func(t *testing.T, kind uint8, body []byte) {
		kinds[int(kind)%len(kinds)].reread(t, body)
	})
}

func FuzzParseSubject(f *testing.F) {
	for _, s := range []string{
		EpisodeSubject(alice()), "palimpsest.episodes.15.default._.helper._", "palimpsest.episodes.16.a.b.c.d",
		"palimpsest.audit.default.%C3%A9._._", "palimpsest.deadletter.ingest._._._._", "palimpsest.outcomes.req-1",
		"palimpsest.incognito.a.b._.c", "palimpsest..", "palimpsest.episodes.*.>", "", "palimpsest.stored.a.B.%zz._",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, subject string) {
		noun, s, err := ParseSubject(subject)
		if err != nil {
			refusal(t, err)
			return
		}
		if noun != NounEpisodes {
			return
		}
		back, of, err := ParseSubject(EpisodeSubject(s))
		if err != nil || back != noun || of != s {
			t.Fatalf("%q: %v, then %v %v", subject, s, of, err)
		}
	})
}

func FuzzTimestamp(f *testing.F) {
	for _, s := range []string{
		`"2026-01-02T03:04:05Z"`, `"2026-01-02T03:04:05.123456789-07:30"`, `1767323045`, `1767323045.25`, `-1e9`, `null`,
		`"0000-01-01T00:00:00Z"`, `"9999-12-31T23:59:59-01:00"`, `1e400`, `"0001-01-01T00:00:00Z"`, `253402300799.9999999`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var at, back Timestamp
		if json.Unmarshal(raw, &at) != nil {
			return
		}
		text, err := json.Marshal(at)
		if err != nil {
			t.Fatalf("write what was read from %s: %v", raw, err)
		}
		if err := json.Unmarshal(text, &back); err != nil || !back.Equal(at.Time) {
			t.Fatalf("%s became %s became %v: %v", raw, text, back, err)
		}
	})
}

func FuzzDeltas(f *testing.F) {
	f.Add(must(json.Marshal(sampleDeltas())))
	f.Add([]byte(`[{"kind":"noop"}]`))
	f.Add([]byte(`[null,{}]`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		var ds, back Deltas
		if err := Unmarshal(raw, &ds); err != nil {
			refusal(t, err)
			return
		}
		text, err := json.Marshal(ds)
		if err != nil {
			return // an instant that JSON cannot write
		}
		if err := Unmarshal(text, &back); err != nil {
			t.Fatalf("read what was written: %v\n%s", err, text)
		}
		if twice := must(json.Marshal(back)); string(twice) != string(text) {
			t.Fatalf("%s became %s", text, twice)
		}
	})
}

// FuzzUnmarshal: text that is not JSON is refused as such, whatever else is wrong.
func FuzzUnmarshal(f *testing.F) {
	for _, text := range []string{
		`{"role":"user","content":"a","metadata":{"k":[1,true,null]}}`, `{"content":"\u00`, `{"content":"\`, `{"content":tru`,
		`{"a":1,}`, `[1,`, `{"a" 1}`, `{"a":01}`, `{"content":"\ud83d\u`, `{"content":"a"}x`, `{"content":"a" "b"}`, `"`, `{"`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var e EpisodeRecorded
		err := Unmarshal(data, &e)
		if err != nil {
			refusal(t, err)
		}
		if len(bytes.TrimSpace(data)) > 0 && utf8.Valid(data) && !json.Valid(data) && (err == nil || !strings.Contains(err.Error(), "is not JSON")) {
			t.Fatalf("%q is no JSON: %v", data, err)
		}
	})
}
