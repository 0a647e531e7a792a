package broker

import "fmt"

// Space is the state of a file system, in bytes.
type Space struct {
	Free  int64 // to an ordinary user
	Total int64
}

// maxReserve is the most that is kept free.
const maxReserve = 512 << 20

// reserve is the free space that the broker leaves: 512 MiB or a tenth of the
// file system, whichever is smaller. Deletes, consumer state and compaction
// need room when new messages no longer get any.
func (s Space) reserve() int64 { return min(maxReserve, s.Total/10) }

// starved: so little is left that a write may have met the end of the disk,
// after which a stream accepts nothing until it is opened again.
func (s Space) starved() bool { return s.Free < s.reserve()/8 }

// low: new messages are refused.
func (s Space) low() bool { return s.Free <= s.reserve() }

// limit is what the streams may occupy in all, given what they do.
func (s Space) limit(used int64) int64 {
	// At least one byte: JetStream takes 0 for an account that has no files.
	return max(1, min(s.Total, used+s.Free-s.reserve()))
}

// Space returns the free bytes of the disk at the last look, and how many of them
// are kept in reserve.
func (e *Embedded) Space() (free, reserve int64) {
	s := *e.space.Load()
	return s.Free, s.reserve()
}

// Check returns an error if so little is free that new messages are refused.
func (s Space) Check() error {
	if s.low() {
		return fmt.Errorf("disk is full: %d MiB free, %d MiB are kept in reserve", s.Free>>20, s.reserve()>>20)
	}
	return nil
}

// Free returns the free bytes of the file system of a directory.
func Free(dir string) (int64, error) {
	space, err := Measure(dir)
	return space.Free, err
}
