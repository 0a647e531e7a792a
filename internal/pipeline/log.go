package pipeline

import (
	"context"
	"time"

	"palimpsest/internal/cursor"
	"palimpsest/pkg/events"
)

// Log is a stage that reads a stream in stream order and acknowledges nothing. Its
// cursor lies beside the writes of its handler. Every reader that reads a partition
// in order, from a place below which all is handled, comes to the same result, so
// several processes may read one partition, and do so for a short time when one
// takes over from another.
type Log struct {
	// Name of the stage in logs and metrics, and of the group of its readers.
	Name   string
	Stream string
	// Partitions are read side by side. Order holds within each.
	Partitions []Partition
	// Cursors lie beside what Handle writes. Shares may lie elsewhere.
	Cursors cursor.Store
	Shares  cursor.Shares
	Handle  LogHandler
	// Shared, if set, gets the names of the readers that this process has, as they change.
	Shared func(readers []string)
	// Batch bounds the messages of one call of Handle, and Linger is how long they
	// are collected. Defaults: 512 and no time.
	Batch  int
	Linger time.Duration
	// Adopt returns where to begin a partition that has no cursor yet. Nil means at
	// the beginning of the stream.
	Adopt func(ctx context.Context, p Partition) (after uint64, err error)
}

// Partition is a part of a stream that has an order of its own.
type Partition struct {
	Reader string // the name of its cursor
	// Filter of its subjects. It ends in ".>", in place of the project and the rest.
	Filter string
}

// Readers are the names of the cursors of partitions.
func Readers(parts []Partition) []string {
	names := make([]string, len(parts))
	for i, p := range parts {
		names[i] = p.Reader
	}
	return names
}

// LogHandler takes messages of one partition, oldest first. It must be idempotent:
// it may get messages again that it has handled, together with all behind them. It
// sets Err of each message that it could not handle, and of all behind that one
// with the same key; an error that it returns is that of all. The payloads in Out
// are published before the cursor moves.
type LogHandler func(ctx context.Context, in []*Entry) error

// Entry is one message of a log.
type Entry struct {
	Meta events.Meta
	Data []byte
	// Key is the fact scope of the message. Messages of one key keep their order.
	Key string
	// Err is nil for a message that was handled. A [Reject] buries it. After any
	// other error it is handed over again, and later messages with its key wait.
	Err error
	Out []events.Payload

	raw   events.Raw
	tries int
}

// NewEntry returns the entry of a message, with Err set where it cannot be decoded.
func NewEntry(raw events.Raw) *Entry {
	_, key := keyOf(raw.Subject)
	e := &Entry{Key: key, raw: raw}
	e.decode()
	return e
}

// ReadLog is a stage that reads a log.
func ReadLog(l Log) Stage {
	if l.Batch == 0 {
		l.Batch = logBatch
	}
	return Stage{name: l.Name, log: &l}
}

const (
	logBatch = 512
	// logHeld bounds the messages that wait to be tried again before the reader
	// stops reading.
	logHeld = 2048
	// logFlush is how often a cursor is written while messages come, and logRest how
	// often while the messages behind it are fewer than logDue. A process that dies
	// repeats what it did since.
	logFlush = 250 * time.Millisecond
	logRest  = 2 * time.Second
	logDue   = 32
	// logIdle is how long a reader waits for messages.
	logIdle = 2 * time.Second
	// shareBeat is how often a process asks for its share of the partitions, and
	// shareLife how long it has them after it died.
	shareBeat = 2 * time.Second
	shareLife = 5 * time.Second
	// compareBeats is every how many beats the stored cursors are compared with what
	// was written. A reader that writes finds out by itself.
	compareBeats = 8
	// suspectStarts is the start from which messages are handled one by one: the
	// reader died that often, less one, and its cursor did not move.
	suspectStarts = 3
	// maxDeaths is how often a message may be alone in hand when the process dies.
	maxDeaths = 3
	// suspectPause is how long a reader waits, for each such death, before it handles
	// that message again. If another message kills the process at its start, it does so
	// meanwhile, and the death does not count against this one.
	suspectPause = time.Second
)

// DecodeEntry reads the payload of an entry.
func DecodeEntry[In events.Payload](e *Entry) (events.Event[In], error) {
	return events.DecodeData[In](e.Meta, e.Data)
}
