package pipeline

import (
	"context"
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"palimpsest/pkg/events"
)

// An incognito episode is removed from its stream, and its letter holds nothing
// of it, whatever else is wrong with it. Others are kept whole.
func TestIncognitoEpisodesAreNotKept(t *testing.T) {
	t.Parallel()
	const secret = "Nora has diabetes."
	structured := `{"specversion":"1.0","id":"1","source":"t","type":"palimpsest.episode.recorded.v1",`
	for name, tc := range map[string]struct {
		body string
		kept bool
	}{
		"plain":       {`{"role":"user","content":"` + secret + `","mode":"incognito"}`, false},
		"wrong role":  {`{"role":7,"content":"` + secret + `","mode":"incognito"}`, false},
		"other case":  {`{"content":"` + secret + `","MODE":"incognito","metadata":[]}`, false},
		"structured":  {structured + `"data":{"content":"` + secret + `","mode":"incognito"}}`, false},
		"base64":      {structured + `"data_base64":"` + base64.StdEncoding.EncodeToString([]byte(`{"content":"`+secret+`","mode":"incognito"}`)) + `"}`, false},
		"persistent":  {`{"role":"user","content":"` + secret + `","mode":"persistent"}`, true},
		"only speech": {`{"role":"user","content":"` + secret + ` mode incognito","metadata":{"mode":"incognito"}}`, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.standard()
			b.start(quickConfig(), onEpisode(func(context.Context, episode) ([]events.Payload, error) {
				return nil, Rejectf(events.CodeInvalidField, "mode", "is refused")
			}))
			msg := nats.NewMsg(events.EpisodeSubject(user("ann")))
			msg.Data = []byte(tc.body)
			msg.Header.Set("X-Note", secret)
			if strings.HasPrefix(tc.body, structured) {
				msg.Header.Set("Content-Type", "application/cloudevents+json")
			}
			ack, err := b.js.PublishMsg(b.context(), msg)
			if err != nil {
				t.Fatal(err)
			}
			l := b.deadLetters(1)[0]
			if l.Size != len(tc.body) || l.Code == "" || l.MessageBuried.Sequence != ack.Sequence || l.Scope.User != "ann" {
				t.Errorf("%+v", l)
			}
			held := func() bool {
				stream, err := b.js.Stream(b.context(), "EPISODES")
				if err != nil {
					t.Fatal(err)
				}
				_, err = stream.GetMsg(b.context(), ack.Sequence)
				return !errors.Is(err, jetstream.ErrMsgNotFound)
			}
			if tc.kept {
				if string(l.Data) != tc.body || l.SHA256 == "" || !held() {
					t.Errorf("held %t: %+v", held(), l)
				}
				return
			}
			b.eventually("its removal", func() bool { return !held() })
			if len(l.Data) > 0 || l.SHA256 != "" || len(l.Headers) > 0 || strings.Contains(l.Reason+strings.Join(l.Causes, ""), secret) {
				t.Errorf("%+v", l)
			}
			b.settled("EPISODES", "episodes")
			if err := b.letters().Retry(b.context(), l.Sequence); !errors.Is(err, ErrClipped) {
				t.Errorf("retry: %v", err)
			}
		})
	}
}
