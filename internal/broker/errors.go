package broker

import "errors"

// The ways in which a broker cannot be had. Each is wrapped in one line that
// names the address, the directory or the deviation.
var (
	// ErrPort: the address to listen on is taken or not to be had.
	ErrPort = errors.New("broker: cannot listen")
	// ErrDirectory: the data directory cannot be used.
	ErrDirectory = errors.New("broker: data directory is unusable")
	// ErrInUse: another process runs a broker on the data directory.
	ErrInUse = errors.New("broker: data directory is in use by another process")
	// ErrNotRunning: no embedded broker runs on the data directory.
	ErrNotRunning = errors.New("broker: not running")
	// ErrNotConnected: the broker does not answer.
	ErrNotConnected = errors.New("broker: not connected")
	// ErrNoJetStream: the server, or the account on it, has no JetStream.
	ErrNoJetStream = errors.New("broker: no JetStream")
	// ErrNoQuorum: too few servers of a cluster are left for it to elect a leader.
	ErrNoQuorum = errors.New("broker: no server leads")
)
