package chaos

import (
	"os"

	"palimpsest/internal/broker"
)

// Plan lists the processes of the program to run, and names the one with the
// broker that they share.
type Plan struct {
	// Processes are all of them; a kill names one by its place.
	Processes []Process
	// Broker is how a broker outside the processes is reached. Its URL is empty where there
	// is none: then there is one process, which has it.
	Broker broker.ConnectConfig
	// Flags precede each command of the program, Environ is added to its
	// environment.
	Flags, Environ []string
}

// Process is one process of a plan.
type Process struct {
	// Name is its service's.
	Name string
	// Args are its command. It listens on free ports of the loopback, and says on
	// which once it is ready.
	Args []string
	// Answers: it can be asked for the ledger.
	Answers bool
}

// Whole is everything in one process, over the data directory of a run. It keeps
// everything itself, whatever engines the user has: they are not to be killed,
// nor filled.
func Whole(dir string) Plan {
	return Plan{
		Processes: []Process{{
			Name: "up", Answers: true,
			Args: []string{"up", "--data", Data(dir), "--http", "127.0.0.1:0", "--nats", "127.0.0.1:0"},
		}},
		Environ: []string{"PALIMPSEST_MEMORY=sqlite", "PALIMPSEST_AUDIT=sqlite", "PALIMPSEST_NATS_URL=embedded"},
	}
}

// shared reports whether the broker outlives the processes.
func (p Plan) shared() bool { return p.Broker.URL != "" }

// command is the program's with these arguments.
func (p Plan) command(args []string) []string {
	return append(p.Flags[:len(p.Flags):len(p.Flags)], args...)
}

func (p Plan) environ() []string { return append(os.Environ(), p.Environ...) }
