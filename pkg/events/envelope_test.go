package events

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"palimpsest/pkg/scope"
)

func alice() scope.Scope {
	return scope.Scope{Project: "default", User: "alice", Agent: "helper", Session: "s-1"}
}

func arrival() time.Time { return time.Date(2026, 3, 4, 5, 6, 7, 89000, time.UTC) }

func headers(pairs ...string) map[string][]string {
	h := map[string][]string{}
	for i := 0; i < len(pairs); i += 2 {
		h[pairs[i]] = append(h[pairs[i]], pairs[i+1])
	}
	return h
}

// binaryHead is a whole and correct header of an episode; changes follow as
// pairs, an empty value taking the header away.
func binaryHead(changes ...string) map[string][]string {
	h := headers(
		"ce-specversion", "1.0", "ce-type", string(KindEpisodeRecorded),
		"ce-source", "app://chat", "ce-id", "e-1", "Content-Type", "application/json",
	)
	for i := 0; i < len(changes); i += 2 {
		delete(h, changes[i])
		if changes[i+1] != "" {
			h[changes[i]] = []string{changes[i+1]}
		}
	}
	return h
}

func episodeRaw(head map[string][]string, body string) Raw {
	return Raw{
		Subject: EpisodeSubject(alice()), Header: head, Body: []byte(body),
		Stream: "EPISODES", StreamID: "EPISODES@1", Sequence: 7, Time: arrival(), Delivery: 1,
	}
}

func refusal(t *testing.T, err error) *FieldError {
	t.Helper()
	var refused *FieldError
	if !errors.As(err, &refused) {
		t.Fatalf("err = %v, want a *FieldError", err)
	}
	return refused
}

const hello = `{"role":"user","content":"hello"}`

func TestDecodeForms(t *testing.T) {
	t.Parallel()
	trace := "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	for name, tc := range map[string]struct {
		raw  Raw
		meta Meta
		role Role
	}{
		"binary": {
			raw: episodeRaw(binaryHead("ce-time", "2026-01-02T03:04:05.5+02:00", "ce-correlationid", "req-1",
				"ce-causationid", "c-1", "ce-traceparent", trace, "ce-subject", "/user/alice/session/s-1/agent/helper/"), hello),
			meta: Meta{ID: "e-1", Source: "app://chat", CorrelationID: "req-1", CausationID: "c-1", Traceparent: trace,
				Time: time.Date(2026, 1, 2, 1, 4, 5, 5e8, time.UTC)},
			role: RoleUser,
		},
		"binary with names in other case": {
			raw: episodeRaw(headers("Ce-Specversion", "1.0", "CE-TYPE", string(KindEpisodeRecorded),
				"ce-Source", "app://chat", "Ce-Id", "e-1"), hello),
			meta: Meta{ID: "e-1", Source: "app://chat", CorrelationID: "e-1", Time: arrival()},
			role: RoleUser,
		},
		"binary with escaped values": {
			raw:  episodeRaw(binaryHead("ce-id", "caf%C3%A9 %25", "ce-source", `"app://a\"b"`), hello),
			meta: Meta{ID: "café %", Source: `app://a"b`, CorrelationID: "café %", Time: arrival()},
			role: RoleUser,
		},
		"binary with a percent sign that escapes nothing": {
			raw:  episodeRaw(binaryHead("ce-id", "100% %zz %4"), hello),
			meta: Meta{ID: "100% %zz %4", Source: "app://chat", CorrelationID: "100% %zz %4", Time: arrival()},
			role: RoleUser,
		},
		"binary, trace context of the transport, a bad one of its own": {
			raw:  episodeRaw(binaryHead("traceparent", trace), hello),
			meta: Meta{ID: "e-1", Source: "app://chat", CorrelationID: "e-1", Traceparent: trace, Time: arrival()},
			role: RoleUser,
		},
		"binary, trace state beside its trace context": {
			raw:  episodeRaw(binaryHead("ce-traceparent", trace, "ce-tracestate", "vendor=1,other=a%2Cb"), hello),
			meta: Meta{ID: "e-1", Source: "app://chat", CorrelationID: "e-1", Traceparent: trace, Tracestate: "vendor=1,other=a,b", Time: arrival()},
			role: RoleUser,
		},
		"binary, trace state of the transport": {
			raw:  episodeRaw(binaryHead("traceparent", trace, "tracestate", "vendor=1"), hello),
			meta: Meta{ID: "e-1", Source: "app://chat", CorrelationID: "e-1", Traceparent: trace, Tracestate: "vendor=1", Time: arrival()},
			role: RoleUser,
		},
		"binary, trace state without a context": {
			raw:  episodeRaw(binaryHead("ce-tracestate", "vendor=1"), hello),
			meta: Meta{ID: "e-1", Source: "app://chat", CorrelationID: "e-1", Time: arrival()},
			role: RoleUser,
		},
		"binary, trace state that is too long": {
			raw:  episodeRaw(binaryHead("ce-traceparent", trace, "ce-tracestate", "vendor="+strings.Repeat("x", 512)), hello),
			meta: Meta{ID: "e-1", Source: "app://chat", CorrelationID: "e-1", Traceparent: trace, Time: arrival()},
			role: RoleUser,
		},
		"plain, trace context of the transport": {
			raw:  episodeRaw(headers("Traceparent", trace, "Tracestate", "vendor=1", "Nats-Msg-Id", "m-1"), hello),
			meta: Meta{ID: "m-1", Source: PlainSource, CorrelationID: "m-1", Traceparent: trace, Tracestate: "vendor=1", Time: arrival()},
			role: RoleUser,
		},
		"structured": {
			raw: episodeRaw(headers("content-type", "application/cloudevents+json; charset=utf-8"),
				`{"specversion":"1.0","type":"palimpsest.episode.recorded.v1","source":"/x","id":"e-2","time":"2026-01-02T03:04:05Z",
				  "subject":"/user/alice/session/s-1/agent/helper/","correlationid":"req-2","flag":true,"data":`+hello+`}`),
			meta: Meta{ID: "e-2", Source: "/x", CorrelationID: "req-2", Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)},
			role: RoleUser,
		},
		"structured with data in base64": {
			raw: episodeRaw(headers("Content-Type", "application/cloudevents+json"),
				`{"specversion":"1.0","type":"palimpsest.episode.recorded.v1","source":"/x","id":"e-2",
				  "data_base64":"eyJyb2xlIjoidXNlciIsImNvbnRlbnQiOiJoZWxsbyJ9"}`),
			meta: Meta{ID: "e-2", Source: "/x", CorrelationID: "e-2", Time: arrival()},
			role: RoleUser,
		},
		"plain": {
			raw:  episodeRaw(nil, ` { "content" : "hello" }`),
			meta: Meta{ID: HashID("EPISODES@1", "7"), Source: PlainSource, CorrelationID: HashID("EPISODES@1", "7"), Time: arrival()},
			role: RoleUser,
		},
		"plain with a role and an id": {
			raw:  episodeRaw(headers("Nats-Msg-Id", "m-1"), `{"content":"hello","role":"assistant"}`),
			meta: Meta{ID: "m-1", Source: PlainSource, CorrelationID: "m-1", Time: arrival()},
			role: RoleAssistant,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := tc.meta
			want.Kind, want.Scope, want.Arrived, want.Sequence, want.Delivery = KindEpisodeRecorded, alice(), arrival(), 7, 1
			meta, data, err := Decode(tc.raw)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, meta); diff != "" {
				t.Errorf("meta (-want +got):\n%s", diff)
			}
			e, err := DecodeData[EpisodeRecorded](meta, data)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(EpisodeRecorded{Scope: alice(), Role: tc.role, Content: "hello"}, e.Data); diff != "" {
				t.Errorf("data (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWithRole(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		` {"content":"x"}`: `{"role":"user","content":"x"}`,
		`{}`:               `{"role":"user"}`,
		`{"a":{"role":1},"b":["role"],"c":"role"}`: `{"role":"user","a":{"role":1},"b":["role"],"c":"role"}`,
		`{"Role":"system"}`:                        `{"role":"user","Role":"system"}`,
		`{"content":"x", "r\u006fle" : "system"}`:  `{"content":"x", "r\u006fle" : "system"}`,
		`{"role":null}`:                            `{"role":null}`,
		`{"content":"x",}`:                         `{"content":"x",}`,
		`{"content":"x"} behind`:                   `{"content":"x"} behind`,
		`{"content":01}`:                           `{"content":01}`,
		`["role"]`:                                 `["role"]`,
		`{`:                                        `{`,
		``:                                         ``,
	} {
		if got := string(withRole([]byte(body))); got != want {
			t.Errorf("withRole(%s) = %s, want %s", body, got, want)
		}
	}
}

func TestDecodeTakesTheStoredSubject(t *testing.T) {
	t.Parallel()
	raw := episodeRaw(binaryHead(), hello)
	raw.Subject = "palimpsest.episodes.13.default.alice.helper.s-1"
	meta, _, err := Decode(raw)
	if err != nil || meta.Scope != alice() {
		t.Fatalf("scope = %v, err = %v", meta.Scope, err)
	}
}

func TestDecodeRefuses(t *testing.T) {
	t.Parallel()
	structured := func(body string) Raw {
		return episodeRaw(headers("Content-Type", "application/cloudevents+json"), body)
	}
	for name, tc := range map[string]struct {
		raw         Raw
		field, code string
	}{
		"no specversion":             {episodeRaw(binaryHead("ce-specversion", ""), hello), "specversion", CodeMalformed},
		"other specversion":          {episodeRaw(binaryHead("ce-specversion", "0.3"), hello), "specversion", CodeMalformed},
		"no id":                      {episodeRaw(binaryHead("ce-id", ""), hello), "id", CodeInvalidField},
		"blank id":                   {episodeRaw(binaryHead("ce-id", "%20"), hello), "id", CodeInvalidField},
		"long id":                    {episodeRaw(binaryHead("ce-id", strings.Repeat("x", 257)), hello), "id", CodeInvalidField},
		"control character in id":    {episodeRaw(binaryHead("ce-id", "a%0D%0Ab"), hello), "id", CodeInvalidField},
		"invalid UTF-8 in id":        {episodeRaw(binaryHead("ce-id", "%ff"), hello), "id", CodeMalformed},
		"id twice":                   {episodeRaw(headers("ce-specversion", "1.0", "ce-id", "a", "Ce-Id", "b"), hello), "id", CodeMalformed},
		"plain, long id":             {episodeRaw(headers("Nats-Msg-Id", strings.Repeat("x", 257)), hello), "id", CodeInvalidField},
		"plain, control character":   {episodeRaw(headers("Nats-Msg-Id", "a\x00"), hello), "id", CodeInvalidField},
		"no source":                  {episodeRaw(binaryHead("ce-source", ""), hello), "source", CodeInvalidField},
		"source is no URI":           {episodeRaw(binaryHead("ce-source", "a b://%"), hello), "source", CodeInvalidField},
		"long source":                {episodeRaw(binaryHead("ce-source", strings.Repeat("x", 1025)), hello), "source", CodeInvalidField},
		"no type":                    {episodeRaw(binaryHead("ce-type", ""), hello), "type", CodeInvalidField},
		"type of somebody else's":    {episodeRaw(binaryHead("ce-type", "com.example.said"), hello), "type", CodeInvalidField},
		"type without a verb":        {episodeRaw(binaryHead("ce-type", "palimpsest.episode.v1"), hello), "type", CodeInvalidField},
		"type without a version":     {episodeRaw(binaryHead("ce-type", "palimpsest.episode.recorded.v"), hello), "type", CodeInvalidField},
		"other major version":        {episodeRaw(binaryHead("ce-type", "palimpsest.episode.recorded.v2"), hello), "type", CodeUnknownKind},
		"kind of another subject":    {episodeRaw(binaryHead("ce-type", string(KindTickIssued)), hello), "type", CodeInvalidField},
		"other scope in ce-subject":  {episodeRaw(binaryHead("ce-subject", "/user/bob/"), hello), "subject", CodeInvalidField},
		"other project":              {episodeRaw(binaryHead("ce-project", "other"), hello), "project", CodeInvalidField},
		"bad time":                   {episodeRaw(binaryHead("ce-time", "yesterday"), hello), "time", CodeInvalidField},
		"data is not JSON":           {episodeRaw(binaryHead("Content-Type", "text/plain"), hello), "datacontenttype", CodeInvalidField},
		"long correlation id":        {episodeRaw(binaryHead("ce-correlationid", strings.Repeat("x", 257)), hello), "correlationid", CodeInvalidField},
		"batch":                      {episodeRaw(headers("Content-Type", "application/cloudevents-batch+json"), "[]"), "content-type", CodeMalformed},
		"structured, not JSON":       {structured("{"), "data", CodeMalformed},
		"structured, empty":          {structured(""), "data", CodeMalformed},
		"structured, no object":      {structured("[]"), "data", CodeInvalidField},
		"structured, id is a number": {structured(`{"specversion":"1.0","id":1}`), "id", CodeInvalidField},
		"structured, no data":        {structured(`{"specversion":"1.0","type":"palimpsest.episode.recorded.v1","source":"/x","id":"1"}`), "data", CodeMalformed},
		"structured, data twice":     {structured(`{"data":1,"data":2}`), "data", CodeMalformed},
		"structured, two data":       {structured(`{"data":1,"data_base64":""}`), "data_base64", CodeMalformed},
		"structured, bad base64":     {structured(`{"data_base64":"*"}`), "data_base64", CodeInvalidField},
		"structured, other subject": {structured(`{"specversion":"1.0","type":"palimpsest.episode.recorded.v1","source":"/x","id":"1",
			"subject":"/user/bob/","data":` + hello + `}`), "subject", CodeInvalidField},
		"not an episode, no envelope": {Raw{Subject: "palimpsest.ticks.default.alice._._", Body: []byte("{}")}, "specversion", CodeMalformed},
		"foreign subject":             {Raw{Subject: "orders.new"}, "subject", CodeSubjectToken},
		"upper case in a token":       {Raw{Subject: "palimpsest.episodes.default.Alice._._"}, "user", CodeSubjectToken},
		"nobody":                      {Raw{Subject: "palimpsest.episodes.default._._._"}, "scope", CodeScopeMissing},
		"control character in user":   {Raw{Subject: "palimpsest.episodes.default.%00._._"}, "user", CodeInvalidField},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, _, err := Decode(tc.raw)
			refused := refusal(t, err)
			if refused.Field != tc.field || refused.Code != tc.code {
				t.Errorf("refused %s (%s): %v; want %s (%s)", refused.Field, refused.Code, err, tc.field, tc.code)
			}
			if got, want := errors.Is(err, ErrUnknownKind), tc.code == CodeUnknownKind; got != want {
				t.Errorf("is ErrUnknownKind = %v, want %v", got, want)
			}
		})
	}
}

func TestDecodeTellsWhatItCouldRead(t *testing.T) {
	t.Parallel()
	meta, _, err := Decode(Raw{Subject: "palimpsest.episodes.default.alice.HELPER.s-1"})
	if err == nil || meta.Scope != (scope.Scope{Project: "default", User: "alice", Session: "s-1"}) {
		t.Errorf("scope = %v, err = %v", meta.Scope, err)
	}
	meta, _, err = Decode(episodeRaw(binaryHead("ce-type", "palimpsest.episode.recorded.v9"), hello))
	if err == nil || meta.ID != "e-1" || meta.Kind != "palimpsest.episode.recorded.v9" {
		t.Errorf("meta = %+v, err = %v", meta, err)
	}
}
