package chaos

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// The parts of a run's directory.
const (
	dataDir    = "data"           // of whatever processes keep themselves
	logFile    = "palimpsest.log" // output of all processes, over all their lives
	recordFile = "chaos.json"     // the record
)

// Data is the data directory of the processes, in the directory of a run.
func Data(dir string) string { return filepath.Join(dir, dataDir) }

// Record is what a run leaves besides the data of the process: with the
// workload, which follows from the size, all that the verdict needs.
type Record struct {
	Size
	// Workload is the digest of the drawn workload.
	Workload string `json:"workload"`
	// Acks holds the acknowledgements of each publisher.
	Acks []Acks `json:"acks"`
	// Rules are those that must have consolidated everything.
	Rules []string `json:"rules"`
	Run   Figures  `json:"run"`
}

// Figures tell of the run.
type Figures struct {
	// Kills are the moments at which a process was killed.
	Kills []Killed `json:"kills"`
	// Backlog is how many acknowledged episodes were not consolidated at the last
	// kill, DrainSeconds how long it took from then on to the end of all work.
	Backlog      int     `json:"backlog"`
	DrainSeconds float64 `json:"drain_seconds"`
	// Repeated are messages published again: those that the broker still knew,
	// and those that it stored once more.
	RepeatedKnown  int `json:"repeated_known"`
	RepeatedStored int `json:"repeated_stored"`
	// Unacknowledged are publishes that were tried again.
	Unacknowledged int `json:"unacknowledged"`
	// Stuck says what the run waited for in vain, empty otherwise.
	Stuck   string  `json:"stuck,omitempty"`
	Seconds float64 `json:"seconds"`
}

// Killed is where the run stood when a process was killed, and how long the next
// one took to be ready, 0 where it was killed before.
type Killed struct {
	Kill
	Name         string `json:"name"`
	Acknowledged int    `json:"acknowledged"`
	Consolidated int    `json:"consolidated"`
	ReadyMS      int64  `json:"ready_ms"`
}

func since(begin time.Time) float64 { return time.Since(begin).Round(time.Millisecond).Seconds() }

func (r Record) write(dir string) error {
	text, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("encode record: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, recordFile), text, 0o600); err != nil {
		return fmt.Errorf("write record: %w", err)
	}
	return nil
}

// ErrRecord: a record does not belong to the workload of this version.
var ErrRecord = errors.New("chaos: the record is of another workload")

// ReadRecord reads what a run left in its directory, and draws its workload
// again. The error may be [ErrRecord].
func ReadRecord(dir string) (Record, *Workload, error) {
	var r Record
	text, err := os.ReadFile(filepath.Join(dir, recordFile))
	if err != nil {
		return r, nil, fmt.Errorf("read record: %w", err)
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return r, nil, fmt.Errorf("read record: %w", err)
	}
	w, err := Draw(r.Size)
	if err != nil {
		return r, nil, err
	}
	digest, err := w.Digest()
	if err != nil {
		return r, nil, err
	}
	if digest != r.Workload || len(r.Acks) != len(w.Voices) {
		return r, nil, ErrRecord
	}
	for n, acks := range r.Acks {
		if len(acks) > len(w.Voices[n].Steps) {
			return r, nil, ErrRecord
		}
	}
	return r, w, nil
}
