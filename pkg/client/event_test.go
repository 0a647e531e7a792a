package client

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

// eventsOf is what a stream holds, as kind=data, and how it ends.
func eventsOf(from io.Reader) (all []string, err error) {
	for e, ended := range readEvents(from) {
		if ended != nil {
			return all, ended
		}
		all = append(all, e.kind+"="+string(e.data))
	}
	return all, nil
}

func TestReadEvents(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		stream string
		want   []string
	}{
		"nothing":          {"", nil},
		"one":              {"id: 7\ndata: {\"a\":1}\n\n", []string{`={"a":1}`}},
		"two":              {"data: a\n\ndata: b\n\n", []string{"=a", "=b"}},
		"kind":             {"event: end\ndata: {}\n\ndata: b\n\n", []string{"end={}", "=b"}},
		"comments":         {":\n\n: heart\ndata: a\n:\n\n", []string{"=a"}},
		"many lines":       {"data: a\ndata: b\n\n", []string{"=a\nb"}},
		"empty data":       {"data\n\ndata:\n\n", []string{"=", "="}},
		"no data":          {"event: end\nid: 5\n\ndata: a\n\n", []string{"=a"}},
		"CRLF":             {"data: a\r\n\r\ndata: b\r\n\r\n", []string{"=a", "=b"}},
		"byte order mark":  {"\ufeffdata: a\n\n", []string{"=a"}},
		"one space only":   {"data:  a\n\ndata:b\n\n", []string{"= a", "=b"}},
		"cut off":          {"data: a\n\ndata: b\n", []string{"=a"}},
		"cut off in a row": {"data: a\n\ndata: b", []string{"=a"}},
		"unknown fields":   {"retry: 5\nfoo: bar\ndata: a\n\n", []string{"=a"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := eventsOf(iotest.OneByteReader(strings.NewReader(test.stream)))
			if !errors.Is(err, ErrEnded) {
				t.Errorf("ended with %v", err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestReadEventsIsBounded(t *testing.T) {
	t.Parallel()
	endless := io.MultiReader(strings.NewReader("data: a\n\ndata: "), repeated('x'))
	line := "data: " + strings.Repeat("x", 1<<20) + "\n"
	many := strings.NewReader("data: a\n\n" + strings.Repeat(line, maxLine/len(line)+2))
	for _, stream := range []io.Reader{endless, many} {
		got, err := eventsOf(stream)
		if len(got) != 1 || err == nil || errors.Is(err, ErrEnded) {
			t.Errorf("%d events, %v", len(got), err)
		}
	}
}

type repeated byte

func (r repeated) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = byte(r)
	}
	return len(b), nil
}

// The events do not depend on how reads cut the stream, and no event holds its own
// terminator.
func FuzzEvents(f *testing.F) {
	for _, s := range []string{"data: a\n\n", ":\n\ndata: a\ndata: b\r\n\r\n", "event: end\ndata: {}\n\n", "\ufeffdata", "data:\n\n\n", "data: a\r\r\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, stream string) {
		whole, err := eventsOf(strings.NewReader(stream))
		cut, cutErr := eventsOf(iotest.HalfReader(strings.NewReader(stream)))
		if diff := cmp.Diff(whole, cut); diff != "" || !errors.Is(err, ErrEnded) || !errors.Is(cutErr, ErrEnded) {
			t.Errorf("%v, %v: %s", err, cutErr, diff)
		}
	})
}
