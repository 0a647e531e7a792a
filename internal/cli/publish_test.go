package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	natsserver "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"palimpsest/internal/terminal"
	"palimpsest/internal/testengine/brokertest"
	"palimpsest/internal/topology"
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

// TestPublishStopsWhileItsInputIsSilent: the command ends although its input neither
// ends nor has data, such as an idle terminal.
func TestPublishStopsWhileItsInputIsSilent(t *testing.T) {
	t.Parallel()
	in, typist := io.Pipe()
	defer func() { _ = typist.Close() }()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	n, err := (&publication{connected: func() bool { return true }}).all(ctx, in, func() {})
	if n != 0 || !errors.Is(err, errInterrupted) {
		t.Errorf("%d acknowledged, %v", n, err)
	}
}

// slowReader returns one line from each read.
type slowReader struct {
	line   int
	lines  int
	before func(line int)
}

func (r *slowReader) Read(into []byte) (int, error) {
	if r.line == r.lines {
		return 0, io.EOF
	}
	r.line++
	r.before(r.line)
	return copy(into, fmt.Sprintf("I like number %d.\n", r.line)), nil
}

// TestP1PublishOutlivesARestart of the server: it waits, tells where it is, and goes
// on; every line is there once and in order.
func TestP1PublishOutlivesARestart(t *testing.T) {
	t.Parallel()
	env := brokertest.Start(t)
	const lines, restarted = 600, 300
	in := &slowReader{lines: lines, before: func(line int) {
		if line == restarted {
			env.Restart(t)
		}
	}}
	var out, said bytes.Buffer
	code := run(t.Context(), []string{"publish", "--user", "nora", "--nats", env.Broker.ClientURL()}, terminal.Terminal{In: in, Out: &out, Err: &said})
	if code != exitOK || out.String() != fmt.Sprintf("%d published\n", lines) {
		t.Fatalf("code %d, output %q, it said %q", code, out.String(), said.String())
	}
	if text := said.String(); strings.Count(text, "waiting for the server") != strings.Count(text, "acknowledges again") {
		t.Errorf("it said %q", text)
	}
	stream, err := env.JS.Stream(t.Context(), topology.StreamEpisodes)
	if err != nil {
		t.Fatal(err)
	}
	next := 1
	for sequence := uint64(1); sequence <= stream.CachedInfo().State.LastSeq; sequence++ {
		msg, err := stream.GetMsg(t.Context(), sequence)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(msg.Data, fmt.Appendf(nil, "number %d.", next)) {
			next++
		}
	}
	if next != lines+1 {
		t.Errorf("line %d is missing, or came too early", next)
	}
}

// forgetful is a JetStream that acknowledges no message before the n-th.
type forgetful struct {
	jetstream.JetStream
	n int
}

func (f *forgetful) PublishMsgAsync(msg *nats.Msg, _ ...jetstream.PublishOpt) (jetstream.PubAckFuture, error) {
	f.n--
	answer := answered{msg: msg, ok: make(chan *jetstream.PubAck, 1), err: make(chan error, 1)}
	if f.n > 0 {
		answer.err <- jetstream.ErrAsyncPublishTimeout
	} else {
		answer.ok <- &jetstream.PubAck{}
	}
	return answer, nil
}

// answered is a future that answers once, as those of the library do.
type answered struct {
	msg *nats.Msg
	ok  chan *jetstream.PubAck
	err chan error
}

func (a answered) Ok() <-chan *jetstream.PubAck { return a.ok }
func (a answered) Err() <-chan error            { return a.err }
func (a answered) Msg() *nats.Msg               { return a.msg }

// TestP1PublishSendsAgainWhatIsNotAcknowledged, also where several in a row get no
// acknowledgement.
func TestP1PublishSendsAgainWhatIsNotAcknowledged(t *testing.T) {
	t.Parallel()
	counted := 0
	p := &publication{
		command: &publishCommand{User: "nora", Role: "user"}, project: "default", batch: "b", js: &forgetful{n: 8},
		connected: func() bool { return true }, tell: func(string) {},
	}
	n, err := p.all(t.Context(), strings.NewReader(strings.Repeat("I live in Rome.\n", 5)), func() { counted++ })
	if n != 5 || counted != 5 || err != nil {
		t.Errorf("%d acknowledged, %d counted: %v", n, counted, err)
	}
}

// TestPublishTellsOnceWhatFails: every message that waits fails alike.
func TestPublishTellsOnceWhatFails(t *testing.T) {
	t.Parallel()
	srv := brokertest.Serve(t, &natsserver.Options{
		Host: "127.0.0.1", Port: natsserver.RANDOM_PORT, NoSigs: true, NoLog: true, JetStream: true, StoreDir: t.TempDir(), MaxPayload: 1 << 10,
	})
	text := "short\n" + strings.Repeat("long ", 1000) + "\nshort\n"
	code, out, complaint := callWith(t, text, nil, "publish", "--user", "nora", "--nats", srv.ClientURL())
	if code != exitError || out != "" || strings.Count(complaint, "line 2") > 1 || strings.Count(complaint, "palimpsest:") != 1 {
		t.Errorf("code %d, output %q, complaint %q", code, out, complaint)
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
