package pipeline

import (
	"sync"
	"time"
)

// Observation is one judged attempt at one message.
type Observation struct {
	Service, Stage string
	// Verdict is ack, nak, wait or bury; Code says why it was buried.
	Verdict, Code string
	// Letters are the codes of dead letters that the handler wrote about parts of
	// the message; the rest of it went on.
	Letters     []string
	Panicked    bool
	Redelivered bool
	// Waited is how long the message had been in its stream when it was looked
	// at, 0 where that is unknown.
	Waited time.Duration
	// Duration is the handler's, 0 where none ran; the messages of a batch
	// share theirs.
	Duration time.Duration
}

// Observer receives every attempt. It is called concurrently and must not block.
type Observer func(Observation)

// StageStats counts what one stage did since the runtime was made.
type StageStats struct {
	Service, Stage string
	// InFlight counts the messages that the stage holds now: waiting, running or to
	// be retried.
	InFlight int
	// Handled counts acknowledged messages; a clock's runs.
	Handled uint64
	Retried uint64
	Buried  uint64
	Panics  uint64
	// Failing: nothing got through since the last failure.
	Failing bool
}

// meter counts for one stage.
type meter struct {
	observe Observer
	// held counts what the stage holds; nil for a clock.
	held func() int

	mu    sync.Mutex
	stats StageStats
}

func newMeter(service, stage string, observe Observer, held func() int) *meter {
	return &meter{observe: observe, held: held, stats: StageStats{Service: service, Stage: stage}}
}

func (m *meter) record(o Observation) {
	m.mu.Lock()
	o.Service, o.Stage = m.stats.Service, m.stats.Stage
	switch action(o.Verdict) {
	case actAck:
		m.stats.Handled++
		m.stats.Failing = false
	case actNak, actWait:
		m.stats.Retried++
		m.stats.Failing = true
	case actBury:
		m.stats.Buried++
	}
	if o.Panicked {
		m.stats.Panics++
	}
	m.mu.Unlock()
	if m.observe != nil {
		m.observe(o)
	}
}

func (m *meter) snapshot() StageStats {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.stats
}
