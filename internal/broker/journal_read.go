package broker

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"palimpsest/internal/topology"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

const (
	// singleReads is how many effects are asked for one by one before a consumer
	// is made: rolling a scope forward rarely needs more than one or two.
	singleReads = 8
	// readAhead bounds the messages under way to a reader, of 1 MiB at most.
	readAhead = 64
	// readAheadBytes bounds what the server sends at once, whoever is too slow to
	// take it; above the largest effect, or nothing would come.
	readAheadBytes = 8 << 20
	// followBytes is as much for one who follows: there may be many, and slow ones.
	followBytes = 2 << 20
	// readPatience is how long a reader waits for the next message before it
	// looks whether what it waits for was purged.
	readPatience = 2 * time.Second
	// maxPatience bounds how long a consumer may be silent though there is more, before
	// the next one is tried: twice as long as the one before.
	maxPatience = time.Minute
	// readBeat is how often a server says meanwhile that it serves the reader. The
	// library asks anew after two of them, which must be less than readPatience: a
	// request that got lost in a cluster would be waited for without end.
	readBeat = 900 * time.Millisecond
)

// effects is a sequence of effects or the error that ended it.
type effects = iter.Seq2[events.Event[events.EffectCommitted], error]

// ReadScope implements [audit.Reader].
func (j *Journal) ReadScope(ctx context.Context, fact scope.Scope, after uint64) effects {
	if err := fact.Validate(); err != nil {
		return failed(err)
	}
	return j.read(ctx, auditFilter(scope.Exactly(fact)), after, nil)
}

// Read implements [audit.Reader].
func (j *Journal) Read(ctx context.Context, sel scope.Selector, after uint64) effects {
	if err := sel.Validate(); err != nil {
		return failed(err)
	}
	return j.read(ctx, auditFilter(sel), after, &watch{})
}

// All implements [audit.Tail].
func (j *Journal) All(ctx context.Context, after uint64) effects {
	return j.read(ctx, allEffects, after, nil)
}

// Begin implements [audit.Tape].
func (j *Journal) Begin(ctx context.Context) (uint64, error) {
	stream, err := j.bind(ctx)
	if err != nil {
		return 0, fmt.Errorf("read journal: %w", err)
	}
	info, err := stream.Info(ctx)
	if err != nil {
		return 0, fmt.Errorf("read journal: %w", err)
	}
	return info.State.FirstSeq, nil
}

// allEffects filters what AUDIT holds of any scope.
const allEffects = "palimpsest." + events.NounAudit + ".>"

func failed(err error) effects {
	return func(yield func(events.Event[events.EffectCommitted], error) bool) {
		yield(events.Event[events.EffectCommitted]{}, fmt.Errorf("read journal: %w", err))
	}
}

// read yields what matches the filter, behind after and up to the message that
// was the last one when it was called.
func (j *Journal) read(ctx context.Context, filter string, after uint64, w *watch) effects {
	return func(yield func(events.Event[events.EffectCommitted], error) bool) {
		r := reader{journal: j, filter: filter, at: after, yield: yield, watch: w}
		if err := r.run(ctx); err != nil && !errors.Is(err, errStopped) {
			yield(events.Event[events.EffectCommitted]{}, fmt.Errorf("read journal behind %d: %w", r.at, err))
		}
	}
}

// errStopped: the reader wants no more.
var errStopped = errors.New("stopped")

// reader is one read of the journal.
type reader struct {
	journal *Journal
	filter  string
	at      uint64 // sequence of the last message seen
	end     uint64 // sequence of the last message to see
	endless bool   // goes on with what is not there yet
	// patience is how long a consumer may be silent though there is more.
	patience time.Duration
	watch    *watch // for what is dropped unread; nil where revisions tell
	yield    func(events.Event[events.EffectCommitted], error) bool
}

func (r *reader) run(ctx context.Context) error {
	var err error
	if r.end, err = r.journal.last(ctx, r.filter); err != nil {
		return err
	}
	last := r.end
	for range singleReads {
		if done, err := r.next(ctx); err != nil {
			return err
		} else if done {
			return r.wholeUpTo(ctx, last)
		}
	}
	if r.at < r.end {
		if err := r.stream(ctx); err != nil {
			return err
		}
	}
	return r.wholeUpTo(ctx, last)
}

// next reads one message by itself.
func (r *reader) next(ctx context.Context) (done bool, err error) {
	if r.at >= r.end {
		return true, nil
	}
	stream, err := r.journal.bind(ctx)
	if err != nil {
		return false, err
	}
	msg, err := stream.GetMsg(ctx, r.at+1, jetstream.WithGetMsgSubject(r.filter))
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound):
		return true, nil // purged meanwhile
	case err != nil:
		return false, err
	case msg.Sequence > r.end:
		return true, nil
	}
	if err := r.whole(ctx, msg.Sequence, nil, nil); err != nil {
		return false, err
	}
	return false, r.take(msg.Subject, msg.Header, msg.Data, msg.Sequence, msg.Time)
}

// stream reads the rest, through another consumer where one has come to nothing.
func (r *reader) stream(ctx context.Context) error {
	for {
		at := r.at
		if err := r.consume(ctx); !errors.Is(err, errUnserved) {
			return err
		}
		r.doubt(at)
	}
}

// doubt grants the next consumer more time, if the one behind sequence at has brought
// nothing: on a busy server the first message may take its time.
func (r *reader) doubt(at uint64) {
	r.patience = min(2*max(r.patience, readPatience), maxPatience)
	if r.at != at {
		r.patience = readPatience
	}
}

// consume reads through a consumer that keeps the order and follows the stream
// through restarts.
func (r *reader) consume(ctx context.Context) error {
	return r.follow(ctx, readAhead, jetstream.OrderedConsumerConfig{
		FilterSubjects:    []string{r.filter},
		DeliverPolicy:     jetstream.DeliverByStartSequencePolicy,
		OptStartSeq:       r.at + 1,
		InactiveThreshold: time.Minute,
	}, func(msg jetstream.Msg, at *jetstream.MsgMetadata, from jetstream.Consumer) (done bool, err error) {
		if at.Sequence.Stream > r.end {
			return true, nil
		}
		if err := r.whole(ctx, at.Sequence.Stream, at, from); err != nil {
			return false, err
		}
		return false, r.take(msg.Subject(), msg.Headers(), msg.Data(), at.Sequence.Stream, at.Timestamp)
	})
}

// errUnserved: there is more to read, and the consumer sends none of it.
var errUnserved = errors.New("the consumer sends nothing of what is there")

// follow hands messages to take, which advances r.at, until the end of the read,
// until take is done or nothing is left. Silence is answered by looking what is
// left to come.
func (r *reader) follow(
	ctx context.Context, ahead int, config jetstream.OrderedConsumerConfig,
	take func(jetstream.Msg, *jetstream.MsgMetadata, jetstream.Consumer) (done bool, err error),
) error {
	consumer, err := r.journal.js.OrderedConsumer(ctx, topology.StreamAudit, config)
	if err != nil {
		return err
	}
	messages, err := consumer.Messages(jetstream.PullMaxMessagesWithBytesLimit(ahead, r.aheadBytes()), jetstream.PullHeartbeat(readBeat))
	if err != nil {
		return err
	}
	defer r.dismiss(ctx, consumer, messages)
	silence := time.Duration(0)
	for r.at < r.end {
		msg, err := await(ctx, messages)
		if errors.Is(err, context.DeadlineExceeded) {
			silence += readPatience
			if err := r.missing(ctx, consumer); err != nil && (silence >= r.patience || !errors.Is(err, errUnserved)) {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		silence = 0
		at, err := msg.Metadata()
		if err != nil {
			return err
		}
		if done, err := take(msg, at, consumer); done || err != nil {
			return err
		}
		// The replica that serves the reader may lag: only the leader knows the end.
		if at.NumPending == 0 && r.at < r.end {
			if err := r.reconsider(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *reader) aheadBytes() int {
	if r.endless {
		return followBytes
	}
	return readAheadBytes
}

// await waits for the next message, but not for ever.
func await(ctx context.Context, messages jetstream.MessagesContext) (jetstream.Msg, error) {
	ctx, cancel := context.WithTimeout(ctx, readPatience)
	defer cancel()
	return messages.Next(jetstream.NextContext(ctx))
}

// missing looks, in a silence, for what should have come. The library drops what
// finds its buffer full, and misses it with the next message: the last one would be
// waited for without end.
func (r *reader) missing(ctx context.Context, consumer jetstream.Consumer) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if r.endless {
		return r.pass(ctx, consumer)
	}
	err := r.reconsider(ctx)
	if err == nil && r.at < r.end {
		err = errUnserved
	}
	return err
}

// reconsider moves the end down to what is still there.
func (r *reader) reconsider(ctx context.Context) error {
	if r.endless {
		return nil
	}
	last, err := r.journal.last(ctx, r.filter)
	if err != nil {
		return err
	}
	r.end = min(r.end, last)
	return nil
}

// dismiss ends the consumer now, not when the server finds it abandoned.
func (r *reader) dismiss(ctx context.Context, consumer jetstream.Consumer, messages jetstream.MessagesContext) {
	messages.Stop()
	info := consumer.CachedInfo()
	if info == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readPatience)
	defer cancel()
	_ = r.journal.js.DeleteConsumer(ctx, topology.StreamAudit, info.Name)
}

// take decodes a message and hands it over if it is an effect: AUDIT keeps
// other events, too.
func (r *reader) take(subject string, header nats.Header, body []byte, sequence uint64, at time.Time) error {
	meta, data, err := events.Decode(events.Raw{
		Subject: subject, Header: header, Body: body, Stream: topology.StreamAudit, Sequence: sequence, Time: at,
	})
	if err != nil {
		return fmt.Errorf("decode effect %d: %w", sequence, err)
	}
	r.at = sequence
	if meta.Kind != events.KindEffectCommitted {
		return nil
	}
	effect, err := events.DecodeData[events.EffectCommitted](meta, data)
	if err != nil {
		return fmt.Errorf("decode effect %d: %w", sequence, err)
	}
	if !r.yield(effect, nil) {
		return errStopped
	}
	return nil
}

// auditFilter is the subject filter of a widening read: a level that is nil
// matches any token, one that is empty the absent token.
func auditFilter(sel scope.Selector) string {
	named := scope.Scope{Project: sel.Project}
	levels := [...]struct {
		want *string
		into *string
	}{{sel.User, &named.User}, {sel.Agent, &named.Agent}, {sel.Session, &named.Session}}
	for _, l := range levels {
		if l.want != nil {
			*l.into = *l.want
		}
	}
	tokens := strings.Split(named.Tokens(), ".")
	for i, l := range levels {
		if l.want == nil {
			tokens[i+1] = "*"
		}
	}
	return "palimpsest." + events.NounAudit + "." + strings.Join(tokens, ".")
}
