package pipeline

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"palimpsest/internal/cursor"
	"palimpsest/pkg/scope"
)

// ErrBacklog: more of the project waits to be stored than its callers may add to.
// It passes.
var ErrBacklog = errors.New("pipeline: too much waits to be stored")

const (
	// backlogFor is how long a look at the backlog is trusted.
	backlogFor = time.Second
	// blindFor is the pause after a look that failed: a publisher may lack the
	// permission to look. Meanwhile every caller is let in.
	blindFor = time.Minute
	// lookLimit bounds one look.
	lookLimit = 5 * time.Second
	// maxAsking bounds the projects that are looked at together.
	maxAsking = 1024
)

// Inbox is the log that callers add to.
type Inbox struct {
	Stream     string
	Partitions []Partition
	Cursors    cursor.Store
}

// admission bounds what the callers of each project add to a log that is behind.
// It looks in the background, so that no caller waits.
type admission struct {
	inbox *Inbox // nil lets every caller in
	js    jetstream.JetStream
	now   func() time.Time
	most  uint64        // messages of a project that are not stored
	age   time.Duration // of the oldest of them

	mu      sync.Mutex
	again   time.Time // when to look again
	looking bool
	asked   map[string]bool  // projects that added something since the last look
	found   map[string]error // the refusal of each project that has a backlog
}

// admit returns [ErrBacklog] if the project may add nothing, as of the last look.
func (a *admission) admit(project string) error {
	if a.inbox == nil {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.asked == nil {
		a.asked = map[string]bool{}
	}
	if len(a.asked) < maxAsking {
		a.asked[project] = true
	}
	if now := time.Now(); !a.looking && !now.Before(a.again) {
		a.looking = true
		asked := a.asked
		a.asked = nil
		go a.look(asked)
	}
	return a.found[project]
}

// look finds out which projects are behind.
func (a *admission) look(asked map[string]bool) {
	ctx, cancel := context.WithTimeout(context.Background(), lookLimit)
	defer cancel()
	found, err := a.backlogs(ctx, asked)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.found, a.looking, a.again = found, false, time.Now().Add(backlogFor)
	if err != nil {
		a.found, a.again = nil, time.Now().Add(blindFor)
	}
}

// backlogs returns the projects among asked that have a backlog.
func (a *admission) backlogs(ctx context.Context, asked map[string]bool) (map[string]error, error) {
	stream, err := a.js.Stream(ctx, a.inbox.Stream)
	if err != nil {
		return nil, err
	}
	cursors, err := a.inbox.Cursors.ReadCursors(ctx, Readers(a.inbox.Partitions)...)
	if err != nil {
		return nil, err
	}
	behind := map[int]uint64{} // partitions that have something to read: from where
	oldest, lowest := time.Time{}, uint64(0)
	for i, p := range a.inbox.Partitions {
		first, err := firstBehind(ctx, stream, cursors[i].Sequence, p.Filter)
		if err != nil {
			return nil, err
		}
		if first == nil {
			continue
		}
		behind[i] = cursors[i].Sequence
		oldest = earlier(oldest, first.Time)
		if lowest == 0 || first.Sequence < lowest {
			lowest = first.Sequence
		}
	}
	if len(behind) == 0 || stream.CachedInfo().State.LastSeq-lowest < a.most && a.now().Sub(oldest) < a.age {
		return nil, nil //nolint:nilnil // no project can have a backlog
	}
	found := map[string]error{}
	for project := range asked {
		refuse, err := a.backlogOf(ctx, stream, project, behind)
		if err != nil {
			return nil, err
		}
		if refuse != nil {
			found[project] = refuse
		}
	}
	return found, nil
}

// backlogOf is what refuses a project, nil where nothing does.
func (a *admission) backlogOf(ctx context.Context, stream jetstream.Stream, project string, behind map[int]uint64) (refuse, err error) {
	waiting, oldest := uint64(0), time.Time{}
	for i, after := range behind {
		filter := a.inbox.Partitions[i].ofProject(project)
		first, err := firstBehind(ctx, stream, after, filter)
		if err != nil {
			return nil, err
		}
		if first == nil {
			continue
		}
		oldest = earlier(oldest, first.Time)
		n, err := a.count(ctx, first.Sequence, filter)
		if err != nil {
			return nil, err
		}
		waiting += n
	}
	if waiting >= a.most {
		return fmt.Errorf("%w: %d messages", ErrBacklog, waiting), nil
	}
	if age := a.now().Sub(oldest); !oldest.IsZero() && age >= a.age {
		return fmt.Errorf("%w: the oldest message since %v", ErrBacklog, age.Round(time.Second)), nil
	}
	return nil, nil
}

// count is how many messages match a filter from a sequence on. The server says so
// of a consumer that is about to read them.
func (a *admission) count(ctx context.Context, from uint64, filter string) (uint64, error) {
	consumer, err := a.js.CreateConsumer(ctx, a.inbox.Stream, jetstream.ConsumerConfig{
		DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: from, FilterSubjects: []string{filter},
		AckPolicy: jetstream.AckNonePolicy, MemoryStorage: true, Replicas: 1, InactiveThreshold: lookLimit,
	})
	if err != nil {
		return 0, err
	}
	info := consumer.CachedInfo()
	return info.NumPending, a.js.DeleteConsumer(ctx, a.inbox.Stream, info.Name)
}

// firstBehind is the first message behind a sequence that matches a filter, nil for
// none.
func firstBehind(ctx context.Context, stream jetstream.Stream, after uint64, filter string) (*jetstream.RawStreamMsg, error) {
	msg, err := stream.GetMsg(ctx, after+1, jetstream.WithGetMsgSubject(filter))
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil, nil //nolint:nilnil // there is none
	}
	return msg, err
}

func earlier(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}

// ofProject is the filter of what a project has in the partition.
func (p Partition) ofProject(project string) string {
	return strings.TrimSuffix(p.Filter, ">") + scope.Encode(project) + ".>"
}
