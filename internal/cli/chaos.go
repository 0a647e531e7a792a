package cli

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"time"

	"palimpsest/internal/app"
	"palimpsest/internal/chaos"
	"palimpsest/internal/engine"
	"palimpsest/internal/memory"
	"palimpsest/internal/rules"
)

type chaosCommand struct {
	Episodes int           `help:"Number of different episodes." default:"20000"`
	Users    int           `help:"Number of users." default:"200"`
	Kills    int           `help:"How many times to kill a process (-9), unless --every is given." default:"25"`
	Seed     *uint64       `help:"Repeat the run of this seed: the same words, the same processes killed at the same counts. Random unless given."`
	Replicas int           `help:"Number of processes of each service, on the configured engines; one process with all services unless given."`
	Every    time.Duration `help:"Kill by the clock, with --replicas: one process each time this has passed." placeholder:"DURATION"`
	For      time.Duration `help:"How long to kill by the clock; the episodes are published over this time." default:"60s"`
	Compare  bool          `help:"Publish the same to one process that is not killed, and compare the facts; with --replicas."`
	Keep     bool          `help:"Keep the directory of the run; it is kept anyway if the verdict is bad."`
	Data     string        `help:"Directory of the run, which is kept: a new or an empty one. A temporary one unless given." placeholder:"DIR"`
	Judge    string        `help:"Run nothing; judge the directory of an earlier run again." placeholder:"DIR"`
}

// Help implements kong's interface for the long help.
func (c *chaosCommand) Help() string {
	return `Starts "palimpsest up" on free ports over a directory of its own. Many publishers send episodes: several devices and sessions of each
user, late and reordered messages, and duplicates, which the broker still recognises or no longer does. Meanwhile the process is killed (-9)
at random and started again. When all is consolidated, it is stopped, and its data is compared with the acknowledged episodes and the expected
facts: lost, duplicated, out of order, wrong, the ledger, the audit log against AUDIT, gaps in revisions, and the digest of the memory store
against that of a rebuilt one. The exit code is 0 only if every count is zero and the digests are equal.

With --replicas it starts so many processes of each service, on the NATS server, the Redis and the ClickHouse of the configuration, and kills
one of them at a time. These engines must be empty (name another redis.namespace, another database, another NATS account); the run leaves its
data there.`
}

// Validate implements kong's hook.
func (c *chaosCommand) Validate() error {
	switch {
	case c.Replicas < 0:
		return errors.New("--replicas: is negative")
	case c.Replicas == 0 && (c.Every != 0 || c.Compare):
		return errors.New("--every and --compare are for several processes: name --replicas")
	case c.Every < 0 || c.Every > 0 && c.For < c.Every:
		return errors.New("--for is less than --every")
	}
	return nil
}

// errChaos: the verdict is bad.
var errChaos = errors.New("the data differ from the acknowledged episodes")

// Run implements the command. A bad verdict is an error.
func (c *chaosCommand) Run(inv *app.Invocation) error {
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("chaos: %w", err)
	}
	if c.Judge != "" {
		return c.judge(inv, program)
	}
	size := c.size()
	if err := size.Validate(); err != nil {
		return err
	}
	dir, err := c.directory()
	if err != nil {
		return err
	}
	t := &trial{inv: inv, program: program, dir: dir, kept: c.Keep || c.Data != ""}
	defer t.remove()
	return t.keep(c.try(t, size))
}

// try runs, compares where that is asked for, and concludes.
func (c *chaosCommand) try(t *trial, size chaos.Size) error {
	if err := t.choose(c.Replicas); err != nil {
		return err
	}
	if c.Replicas > 0 {
		if err := app.VacantEngines(t.inv.Context(), t.cfg); err != nil {
			return err
		}
	}
	_, _ = fmt.Fprintf(t.inv.Terminal().Err, "seed %d: %d episodes of %d users, %d kills among %d processes, in %s\n",
		size.Seed, size.Episodes, size.Users, size.Kills, len(t.plan.Processes), t.dir)
	if err := t.run(t.dir, size, t.plan); err != nil {
		return err
	}
	if c.Compare {
		size.Kills, size.Every, size.Processes = 0, 0, 1
		one := t.calm()
		if err := os.Mkdir(one, 0o700); err != nil {
			return fmt.Errorf("chaos: %w", err)
		}
		if err := t.run(one, size, chaos.Whole(one)); err != nil {
			return err
		}
	}
	return t.conclude()
}

// judge judges what a run kept, wherever it kept it.
func (c *chaosCommand) judge(inv *app.Invocation, program string) error {
	record, _, err := chaos.ReadRecord(c.Judge)
	if err != nil {
		return err
	}
	t := &trial{inv: inv, program: program, dir: c.Judge, begun: true, kept: true}
	if err := t.choose(record.Processes / len(app.Services())); err != nil {
		return err
	}
	return t.keep(t.conclude())
}

// directory returns the directory of the run, which must be empty.
func (c *chaosCommand) directory() (string, error) {
	if c.Data == "" {
		return os.MkdirTemp("", "palimpsest-chaos-*")
	}
	dir, err := filepath.Abs(c.Data)
	if err != nil {
		return "", fmt.Errorf("data: %w", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("data: %w", err)
	}
	entries, err := os.ReadDir(dir)
	if err == nil && len(entries) > 0 {
		err = fmt.Errorf("%s is not empty", dir)
	}
	if err != nil {
		return "", fmt.Errorf("data: %w", err)
	}
	return dir, nil
}

func (c *chaosCommand) size() chaos.Size {
	size := chaos.Size{
		Episodes: c.Episodes, Users: c.Users, Kills: c.Kills, Seed: rand.Uint64N(1_000_000),
		Processes: max(1, c.Replicas*len(app.Services())), Every: c.Every, OneVoice: c.Compare,
	}
	if c.Every > 0 {
		size.Kills = int(c.For / c.Every)
	}
	if c.Seed != nil {
		size.Seed = *c.Seed
	}
	return size
}

// trial is one call of the command: its plan and its directory.
type trial struct {
	inv     *app.Invocation
	program string
	dir     string
	begun   bool // the directory holds files of a run
	kept    bool // the directory stays

	cfg  app.Config // of the engines that are judged
	plan chaos.Plan
}

// calm is the directory of the single process that is not killed.
func (t *trial) calm() string { return filepath.Join(t.dir, "one") }

// choose makes the plan: one process of everything, over the directory, or
// replicas of each service.
func (t *trial) choose(replicas int) error {
	if replicas > 0 {
		cfg, err := t.inv.SharedConfiguration()
		if err != nil {
			return err
		}
		t.cfg, t.plan = *cfg, chaos.Plan{
			Broker: cfg.NATS.Named("chaos"), Processes: slices.Repeat(app.Services(), replicas),
			// The engines are named for rebuild too, which has others by default.
			Environ: []string{"PALIMPSEST_MEMORY=" + cfg.Memory, "PALIMPSEST_AUDIT=" + cfg.Audit, "PALIMPSEST_NATS_URL=" + cfg.NATS.URL},
		}
		if file := t.inv.Flags().ConfigFile; file != "" {
			t.plan.Flags = []string{"--config", file}
		}
		return nil
	}
	t.cfg, t.plan = app.OwnEngines(t.dir), chaos.Whole(t.dir)
	return nil
}

func (t *trial) run(dir string, size chaos.Size, plan chaos.Plan) error {
	line, end := progressLine(t.inv.Terminal().Err)
	defer end()
	t.begun = true
	_, err := chaos.Run(t.inv.Context(), chaos.Config{
		Size: size, Plan: plan, Program: t.program, Dir: dir, Rules: memory.Readers(rules.Shipped()), Each: memory.RuleTurn, Progress: line,
	})
	return err
}

// keep keeps the directory where something is to be looked at, and says so.
func (t *trial) keep(err error) error {
	if err == nil || errors.Is(err, errChaos) || t.inv.Context().Err() != nil || engine.Correctable(err) || errors.Is(err, chaos.ErrTaken) {
		return err
	}
	if !t.begun {
		return fmt.Errorf("chaos: %w", err)
	}
	t.kept = true
	return fmt.Errorf("chaos: %w (kept in %s)", err, t.dir)
}

func (t *trial) remove() {
	if !t.kept {
		_ = os.RemoveAll(t.dir)
	}
}

// conclude judges what the run left and prints the verdict; a bad one keeps the
// directory.
func (t *trial) conclude() error {
	out, err := t.verdict()
	if err != nil {
		return err
	}
	t.kept = t.kept || !out.Verdict.OK
	if t.kept {
		out.Dir = t.dir
	}
	inv := t.inv
	if err := inv.Print(out, out.tell); err != nil {
		return err
	}
	if !out.Verdict.OK {
		return errChaos
	}
	return nil
}
