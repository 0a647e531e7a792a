package app

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPublishedLineBecomesAnEpisode(t *testing.T) {
	t.Parallel()
	p := &publication{command: &publishCommand{User: "nora", Role: "user"}, project: "default", batch: "b"}
	for name, c := range map[string]struct{ text, subject, want, refused string }{
		"text":            {text: "I live in Rome.", subject: "palimpsest.episodes.default.nora._._", want: "I live in Rome."},
		"JSON":            {text: `{"content":"Hi","user":"bob","session":"s"}`, subject: "palimpsest.episodes.default.bob._.s", want: `"Hi"`},
		"slash and fox":   {text: `{"content":"Hi","user":"a/b🦊"}`, subject: "palimpsest.episodes.default.a%2Fb%F0%9F%A6%8A._._", want: `"Hi"`},
		"cut off":         {text: `{"content":"Hi"`, refused: "JSON"},
		"wrong type":      {text: `{"content":3}`, refused: "content: must be a string"},
		"no content":      {text: `{"role":"user"}`, refused: "content"},
		"not UTF-8":       {text: "\xff\xfe", refused: "UTF-8"},
		"user too long":   {text: `{"content":"x","user":"` + strings.Repeat("u", 300) + `"}`, refused: "user"},
		"role of nothing": {text: `{"content":"x","role":"robot"}`, refused: "role"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			msg, err := p.message(7, []byte(c.text))
			if c.refused != "" {
				if err == nil || !strings.Contains(err.Error(), c.refused) {
					t.Errorf("got %v, want %q", err, c.refused)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if msg.Subject != c.subject || !bytes.Contains(msg.Data, []byte(c.want)) {
				t.Errorf("%s %s", msg.Subject, msg.Data)
			}
		})
	}
}

func TestLinesAreReadWithTheirNumbers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		in   string
		want []string
		err  string
	}{
		"nothing":   {},
		"blanks":    {in: "\n  \na\n\nb", want: []string{"a", "b"}},
		"CRLF":      {in: "a\r\nb\r\n", want: []string{"a", "b"}},
		"too long":  {in: "a\n" + strings.Repeat("x", maxPublishLine+1), want: []string{"a"}, err: "line 2: is longer than"},
		"last open": {in: "a", want: []string{"a"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			var failed string
			for l := range read(t.Context(), strings.NewReader(c.in)) {
				if l.err != nil {
					failed = l.err.Error()
					continue
				}
				got = append(got, string(l.text))
			}
			if diff := cmp.Diff(c.want, got); diff != "" || !strings.HasPrefix(failed, c.err) || c.err == "" && failed != "" {
				t.Errorf("%s, error %q", diff, failed)
			}
		})
	}
}

// TestPublishStopsWhileItsInputIsSilent: a terminal that nobody types on must
// not keep the command from ending.
func TestPublishStopsWhileItsInputIsSilent(t *testing.T) {
	t.Parallel()
	in, typist := io.Pipe()
	defer func() { _ = typist.Close() }()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	n, err := (&publication{}).all(ctx, in, func() {})
	if n != 0 || !errors.Is(err, errInterrupted) {
		t.Errorf("%d acknowledged, %v", n, err)
	}
}

func FuzzPublishedLine(f *testing.F) {
	f.Add([]byte("I live in Rome."))
	f.Add([]byte(`{"content":"Hi","user":"a/b","timestamp":1700000000,"metadata":{"tz":"UTC"}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		text = bytes.TrimSpace(text)
		if len(text) == 0 {
			return
		}
		p := &publication{command: &publishCommand{User: "nora", Role: "user"}, project: "default", batch: "b"}
		if msg, err := p.message(1, text); err == nil && len(msg.Data) == 0 {
			t.Error("a message without a body")
		}
	})
}
