package events

import (
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestSamplesAreReadAtOnce: no kind takes the slow way.
func TestSamplesAreReadAtOnce(t *testing.T) {
	t.Parallel()
	for _, s := range samples() {
		_, _, body, err := Encode(s.meta, s.payload)
		if err != nil {
			t.Fatal(err)
		}
		if v := reflect.New(reflect.TypeOf(s.payload)); !readAtOnce(body, v.Interface(), maxOwnDepth) {
			t.Errorf("%T is read in several passes", s.payload)
		}
	}
}

// both reads data in one pass and in several passes, and expects equal results.
func both(t *testing.T, data []byte, kind reflect.Type) {
	t.Helper()
	quick, slow := reflect.New(kind), reflect.New(kind)
	if !readAtOnce(data, quick.Interface(), MaxDepth) {
		return
	}
	if err := readOrExplain(data, slow.Interface(), MaxDepth); err != nil {
		t.Fatalf("read at once, and refused: %v", err)
	}
	if diff := cmp.Diff(slow.Elem().Interface(), quick.Elem().Interface(), comparable()); diff != "" {
		t.Fatalf("(-in several passes +at once):\n%s", diff)
	}
}

// FuzzReadAtOnce: one pass accepts nothing that several passes refuse, and reads the
// same.
func FuzzReadAtOnce(f *testing.F) {
	kinds := samples()
	for i, s := range kinds {
		_, _, body, err := Encode(s.meta, s.payload)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(uint8(i), body)
	}
	for _, text := range []string{
		`{"content":"a","content":"b"}`, `{"Content":"a"}`, `{"content":"\ud800"}`, "{\"content\":\"\xff\"}", `{"content":null}`, `{}x`, ``, ` `,
		`{"metadata":{"n":1e999}}`, `{"metadata":{"a":` + strings.Repeat("[", 40) + strings.Repeat("]", 40) + `}}`,
		`{"timestamp":"2026-01-02T03:04:05,5Z"}`, `{"timestamp":1e3}`, `{"infer":"true"}`, `{"content":1}`,
		`{"confidence":1e400}`, `{"metadata":{"a":"\\\"[[["}}`, `{"metadata":{"n":-0}}`, `{"sequence":1.0}`,
	} {
		for i := range kinds {
			f.Add(uint8(i), []byte(text))
		}
	}
	f.Fuzz(func(t *testing.T, kind uint8, data []byte) {
		both(t, data, reflect.TypeOf(kinds[int(kind)%len(kinds)].payload))
	})
}

// A refused text of the first pass leaves nothing behind, and a member that the
// text omits keeps its value in both ways of reading.
func TestUnmarshalKeepsOmittedMembers(t *testing.T) {
	t.Parallel()
	type value struct {
		A string `json:"a"`
		B int    `json:"b"`
	}
	for text, want := range map[string]value{
		`{"b":2}`:   {A: "kept", B: 2},
		`{"a":"x"}`: {A: "x", B: 1},
	} {
		got := value{A: "kept", B: 1}
		if err := Unmarshal([]byte(text), &got); err != nil || got != want {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
		got = value{A: "kept", B: 1}
		if err := readOrExplain([]byte(text), &got, MaxDepth); err != nil || got != want {
			t.Errorf("%s in several passes: %+v, %v", text, got, err)
		}
	}
	got := value{A: "kept", B: 1}
	if err := Unmarshal([]byte(`{"a":"x","b":"no number"}`), &got); err == nil {
		t.Errorf("accepted: %+v", got)
	}
}
