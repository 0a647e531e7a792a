package topology

import (
	"cmp"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"palimpsest/pkg/events"
)

// The streams, in the order in which data meets them.
const (
	StreamEpisodes   = "EPISODES"
	StreamStored     = "STORED"
	StreamTicks      = "TICKS"
	StreamCandidates = "CANDIDATES"
	StreamDeltas     = "DELTAS"
	StreamCommands   = "COMMANDS"
	StreamAudit      = "AUDIT"
	StreamAccess     = "ACCESS"
	StreamDeadLetter = "DEADLETTER"

	// BucketKeys is the key-value bucket of API keys, StreamKeys its stream, and
	// SubjectKeys what its subjects begin with.
	BucketKeys  = "KEYS"
	StreamKeys  = "KV_" + BucketKeys
	SubjectKeys = "$KV." + BucketKeys + "."
)

const (
	// shortestWindow is the shortest deduplication window that JetStream allows.
	// Message ids share one namespace per stream, so on EPISODES a longer one
	// would let one tenant's ids hide another's.
	shortestWindow = 100 * time.Millisecond
	// usualWindow is JetStream's default; it saves work and proves nothing.
	usualWindow = 2 * time.Minute

	// ackWait is renewed each second by the runtime, so it bounds how long the work
	// of a dead replica, or a message lost with its connection, waits, not how long
	// work may take. Four renewals in a row may be late or lost, to a busy machine or
	// a broker that elects a leader, before a live replica's work is delivered to
	// another one too, which does no harm.
	ackWait = 5 * time.Second

	// ackPending bounds what all replicas of a service hold together: 64 replicas
	// with 64 slots each.
	ackPending = 4096
)

// Config is what an operator may choose about the streams. Its zero
// value is one replica that keeps everything.
type Config struct {
	// Replicas of each stream, 1 to 5; 0 means 1.
	Replicas int
	// EpisodesMaxAge and EpisodesMaxBytes trim EPISODES, oldest first; 0 keeps.
	EpisodesMaxAge   time.Duration
	EpisodesMaxBytes int64
	// AuditMaxAge and AuditMaxBytes trim AUDIT, oldest first; 0 keeps. A rebuild
	// reads trimmed effects from the audit log.
	AuditMaxAge   time.Duration
	AuditMaxBytes int64
}

// deadLetterAge is how long dead letters are kept.
const deadLetterAge = 30 * 24 * time.Hour

// Validate refuses values that JetStream would refuse, by name.
func (c Config) Validate() error {
	switch {
	case c.Replicas < 0 || c.Replicas > 5:
		return fmt.Errorf("replicas: %d is not between 1 and 5", c.Replicas)
	case c.EpisodesMaxAge < 0 || c.AuditMaxAge < 0:
		return fmt.Errorf("max age: is negative")
	case c.EpisodesMaxBytes < 0 || c.AuditMaxBytes < 0:
		return fmt.Errorf("max bytes: is negative")
	case 0 < c.AuditMaxAge && c.AuditMaxAge < usualWindow:
		return fmt.Errorf("max age: is shorter than the deduplication window of %v", usualWindow)
	case 0 < c.EpisodesMaxAge && c.EpisodesMaxAge < shortestWindow:
		return fmt.Errorf("max age: is shorter than the deduplication window of %v", shortestWindow)
	}
	return nil
}

// Declaration is a topology: all streams and all durable consumers.
type Declaration struct{ Streams []Stream }

// Stream is a stream and the durable consumers that read it.
type Stream struct {
	Config    jetstream.StreamConfig
	Consumers []jetstream.ConsumerConfig
}

// Declare declares what Palimpsest runs on. Services bind to these consumers by
// name and create no durable one. EPISODES has none: ingest reads each partition in
// order from a cursor in the memory store. The projections read AUDIT likewise.
func Declare(cfg Config) Declaration {
	// JetStream compresses a block once it is full. Queues are mostly empty.
	kept := func(name, noun string) jetstream.StreamConfig {
		s := stream(cfg, name, noun, jetstream.LimitsPolicy)
		s.Compression = jetstream.S2Compression
		return s
	}
	queue := func(name, noun string) jetstream.StreamConfig {
		return stream(cfg, name, noun, jetstream.WorkQueuePolicy)
	}

	episodes := kept(StreamEpisodes, events.NounEpisodes)
	episodes.Description = "What was said."
	episodes.Duplicates = shortestWindow
	episodes.MaxAge, episodes.MaxBytes = cfg.EpisodesMaxAge, unlimited(cfg.EpisodesMaxBytes)
	episodes.SubjectTransform = &jetstream.SubjectTransformConfig{
		Source: episodes.Subjects[0],
		Destination: fmt.Sprintf(
			"palimpsest.%s.{{partition(%d,1,2,3)}}.{{wildcard(1)}}.{{wildcard(2)}}.{{wildcard(3)}}.{{wildcard(4)}}",
			events.NounEpisodes, events.Partitions),
	}

	stored := queue(StreamStored, events.NounStored)
	stored.Description = "Wake-ups: safe to lose, repeat and reorder."
	// One message a subject would do, but nats-server 2.15.2 has hung for good on
	// a work queue that drops the older one while it is acknowledged: publishers
	// and acknowledgements of the stream wait, and so does its shutdown.
	stored.MaxAge = time.Hour

	work := func(name, noun string) jetstream.StreamConfig {
		s := queue(name, noun)
		s.Subjects = append([]string{classSubject(noun, events.ClassRules), classSubject(noun, events.ClassModel)}, s.Subjects...)
		return s
	}
	ticks := work(StreamTicks, events.NounTicks)
	ticks.Description = "Consolidate a range of a scope by a rule."
	candidates := work(StreamCandidates, events.NounCandidates)
	candidates.Description = "What a range may have taught, to be decided."
	deltas := work(StreamDeltas, events.NounDeltas)
	deltas.Description = "Decided batches, with what they rest on."
	commands := queue(StreamCommands, events.NounCommands)
	commands.Description = "What API callers ask for."

	audit := kept(StreamAudit, events.NounAudit)
	audit.Description = "The truth: every effect, as it was committed."
	audit.MaxAge, audit.MaxBytes = cfg.AuditMaxAge, unlimited(cfg.AuditMaxBytes)

	access := queue(StreamAccess, events.NounAccess)
	access.Description = "Facts that were returned."
	access.MaxAge = 24 * time.Hour

	letters := kept(StreamDeadLetter, events.NounDeadLetter)
	letters.Description = "What was refused, by whom and why."
	letters.Subjects = []string{"palimpsest." + events.NounDeadLetter + ".*.*.*.*.*"}
	letters.MaxAge = deadLetterAge

	keys := kept(StreamKeys, BucketKeys)
	keys.Description = "API keys, hashed, and how much each is used."
	keys.Subjects, keys.Compression = []string{SubjectKeys + ">"}, jetstream.NoCompression
	keys.MaxMsgsPerSubject, keys.Discard = 1, jetstream.DiscardNew
	keys.DenyDelete = true

	return Declaration{Streams: []Stream{
		{episodes, nil},
		{stored, []jetstream.ConsumerConfig{consumer("scheduler-stored", stored)}},
		{ticks, classConsumers("extractor-ticks", ticks)},
		{candidates, classConsumers("decider-candidates", candidates)},
		{deltas, classConsumers("consolidator-deltas", deltas)},
		{commands, []jetstream.ConsumerConfig{consumer("decider-commands", commands)}},
		{audit, []jetstream.ConsumerConfig{consumer("scheduler-audit", audit)}},
		{access, []jetstream.ConsumerConfig{consumer("consolidator-access", access)}},
		{letters, nil},
		{keys, nil},
	}}
}

// retired are the subjects of streams that an earlier version made and that are not
// used any more.
var retired = map[string]string{
	"TRIALS": "palimpsest.trials.*.*.*",
	"BURIED": "palimpsest.buried.*.*.*",
}

// stream is what all streams share: files, a fixed number of subject tokens,
// and no other bound than those set by the caller. Direct gets are not allowed:
// any replica answers them, also one that lags, and says that there is no such
// message; every read has to see what was acknowledged before.
func stream(cfg Config, name, noun string, retention jetstream.RetentionPolicy) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:              name,
		Subjects:          []string{"palimpsest." + noun + ".*.*.*.*"},
		Retention:         retention,
		Storage:           jetstream.FileStorage,
		Discard:           jetstream.DiscardOld,
		Replicas:          max(cfg.Replicas, 1),
		Duplicates:        usualWindow,
		MaxMsgs:           -1,
		MaxBytes:          -1,
		MaxMsgsPerSubject: -1,
		MaxMsgSize:        -1,
		MaxConsumers:      -1,
	}
}

// classSubject is where the work of rules of a class is published.
func classSubject(noun string, class events.Class) string {
	return "palimpsest." + noun + "." + string(class) + ".*.*.*.*"
}

// classConsumers are one consumer for each class of rules, and one for the work
// that versions before classes left in the stream or still publish.
func classConsumers(name string, of jetstream.StreamConfig) []jetstream.ConsumerConfig {
	all := []jetstream.ConsumerConfig{consumer(name+"-rules", of), consumer(name+"-model", of), consumer(name, of)}
	for i := range all {
		all[i].FilterSubject = of.Subjects[i]
	}
	return all
}

// consumer reads a whole stream. Deliveries are counted by the runtime: with a
// MaxDeliver, a message would be lost to view.
func consumer(name string, of jetstream.StreamConfig) jetstream.ConsumerConfig {
	return jetstream.ConsumerConfig{
		Durable:       name,
		FilterSubject: of.Subjects[0],
		DeliverPolicy: jetstream.DeliverAllPolicy,
		AckPolicy:     jetstream.AckExplicitPolicy,
		AckWait:       ackWait,
		MaxDeliver:    -1,
		MaxAckPending: ackPending,
	}
}

func unlimited(bound int64) int64 { return cmp.Or(bound, -1) }
