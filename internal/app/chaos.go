package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	auditsqlite "palimpsest/internal/audit/sqlite"
	"palimpsest/internal/broker"
	"palimpsest/internal/chaos"
	"palimpsest/internal/memory"
)

type chaosCommand struct {
	Episodes int     `help:"Different episodes to say." default:"20000"`
	Users    int     `help:"Users to say them." default:"200"`
	Kills    int     `help:"How often to kill the process (-9)." default:"25"`
	Seed     *uint64 `help:"Repeat the run of this seed: the same words, killed at the same counts. Random unless given."`
	Keep     bool    `help:"Keep the directory of the run; one with a bad verdict is kept anyway."`
	Data     string  `help:"Directory to run in, and to keep: a new or an empty one. A temporary one unless given." placeholder:"DIR"`
	Judge    string  `help:"Run nothing; judge the directory that a run kept once more." placeholder:"DIR"`
}

// Help implements kong's interface for the long help.
func (c *chaosCommand) Help() string {
	return `Starts "palimpsest up" on free ports over a directory of its own and lets many publishers talk to it: several devices and sessions of each
user, late and reordered messages, repetitions that the broker still knows and others that it has forgotten. Meanwhile the process is killed (-9)
at random and started again. When all is consolidated, it is stopped, and what it left is held against what was acknowledged and what must be
known: lost, duplicated, out of order, wrong, the ledger, the audit log against AUDIT, gaps in revisions, and the digest of the memory store
against that of one that is built anew. The exit code is 0 only if every count is zero and the digests are equal.`
}

// errChaos: the verdict is bad.
var errChaos = errors.New("what was kept is not what was acknowledged")

// tried is a run and what came of it.
type tried struct {
	chaos.Size
	Run     chaos.Figures `json:"run"`
	Verdict chaos.Verdict `json:"verdict"`
	Dir     string        `json:"dir,omitempty"` // where it is kept
}

// Run implements the command. A bad verdict is an error.
func (c *chaosCommand) Run(inv *invocation) error {
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("chaos: %w", err)
	}
	if c.Judge != "" {
		return c.conclude(inv, program, c.Judge, func(bool) bool { return true })
	}
	size := c.size()
	if err := size.Validate(); err != nil {
		return err
	}
	dir, err := c.directory()
	if err != nil {
		return err
	}
	kept := c.Keep || c.Data != ""
	defer func() {
		if !kept {
			_ = os.RemoveAll(dir)
		}
	}()
	if err := runChaos(inv, program, dir, size); err != nil {
		if inv.ctx.Err() == nil { // what went wrong is to be looked at
			kept = true
			err = fmt.Errorf("%w (kept in %s)", err, dir)
		}
		return err
	}
	return c.conclude(inv, program, dir, func(ok bool) bool {
		kept = kept || !ok
		return kept
	})
}

// directory is where to run: nothing of anybody else's may be in it.
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
	size := chaos.Size{Episodes: c.Episodes, Users: c.Users, Kills: c.Kills, Seed: rand.Uint64N(1_000_000)}
	if c.Seed != nil {
		size.Seed = *c.Seed
	}
	return size
}

func runChaos(inv *invocation, program, dir string, size chaos.Size) error {
	_, _ = fmt.Fprintf(inv.term.Err, "seed %d: %d episodes of %d users, %d kills, in %s\n",
		size.Seed, size.Episodes, size.Users, size.Kills, dir)
	var rules []string
	for _, r := range memory.Shipped() {
		if r.Enabled {
			rules = append(rules, r.ID)
		}
	}
	line, end := progressLine(inv.term.Err)
	defer end()
	_, err := chaos.Run(inv.ctx, chaos.Config{
		Size: size, Program: program, Dir: dir, Rules: rules, Each: memory.RuleTurn, Progress: line,
	})
	return err
}

// progressLine rewrites one line on a terminal, and says little elsewhere.
func progressLine(to io.Writer) (tell func(chaos.Progress), end func()) {
	f, ok := to.(*os.File)
	live := ok && terminal(f)
	every := 10 * time.Second
	if live {
		every = 100 * time.Millisecond
	}
	var told time.Time
	tell = func(p chaos.Progress) {
		if time.Since(told) < every {
			return
		}
		told = time.Now()
		text := fmt.Sprintf("acknowledged %d  consolidated %d  kills %d", p.Acknowledged, p.Consolidated, p.Kills)
		if live {
			text = "\r\x1b[K" + text
		} else {
			text += "\n"
		}
		_, _ = io.WriteString(to, text)
	}
	return tell, func() {
		if live {
			_, _ = io.WriteString(to, "\r\x1b[K")
		}
	}
}

// conclude judges the directory of a finished run and prints the verdict; keep
// is told whether it is good, and says whether the directory stays.
func (c *chaosCommand) conclude(inv *invocation, program, dir string, keep func(ok bool) bool) error {
	record, verdict, err := judgeDirectory(inv.ctx, program, dir)
	if err != nil {
		if inv.ctx.Err() == nil {
			keep(false)
			err = fmt.Errorf("chaos: %w (kept in %s)", err, dir)
		}
		return err
	}
	out := tried{Size: record.Size, Run: record.Run, Verdict: verdict}
	if keep(verdict.OK) {
		out.Dir = dir
	}
	if err := inv.print(out, out.tell); err != nil {
		return err
	}
	if !verdict.OK {
		return errChaos
	}
	return nil
}

// judgeDirectory opens what a stopped process left, and judges it.
func judgeDirectory(ctx context.Context, program, dir string) (record chaos.Record, verdict chaos.Verdict, err error) {
	record, workload, err := chaos.ReadRecord(dir)
	if err != nil {
		return record, verdict, err
	}
	if verdict, err = judgeStopped(ctx, record, workload, chaos.Data(dir)); err != nil {
		return record, verdict, err
	}
	digests, failed := chaos.Rebuild(ctx, program, chaos.Data(dir))
	verdict.Compare(digests, failed)
	return record, verdict, ctx.Err()
}

func judgeStopped(ctx context.Context, record chaos.Record, workload *chaos.Workload, data string) (verdict chaos.Verdict, err error) {
	cfg := defaults()
	cfg.Data = data
	var open []closer
	defer func() {
		for n := len(open) - 1; n >= 0; n-- {
			err = errors.Join(err, open[n].close(context.WithoutCancel(ctx)))
		}
		err = plain(cfg, err)
	}()
	if _, err := os.Stat(cfg.dataPath(natsDir)); err != nil {
		return verdict, err
	}
	streams, err := broker.StartEmbedded(broker.EmbeddedConfig{Dir: cfg.dataPath(natsDir), Private: true})
	if err != nil {
		return verdict, err
	}
	open = append(open, closer{"broker", streams.Shutdown})
	log, err := auditsqlite.Open(ctx, auditsqlite.Config{Path: cfg.dataPath(auditFile)})
	if err != nil {
		return verdict, err
	}
	open = append(open, closer{"audit log", func(context.Context) error { return log.Close() }})
	live, err := openLive(ctx, &cfg)
	if err != nil {
		return verdict, err
	}
	open = append(open, closer{"memory store", func(context.Context) error { return live.Close() }})
	letters, err := streams.JetStream().Stream(ctx, broker.StreamDeadLetter)
	if err != nil {
		return verdict, err
	}
	return chaos.Judge(ctx, record, workload, chaos.Evidence{
		Said: pastOf(streams.JetStream()), Journal: broker.NewJournal(streams.JetStream()), Log: log, Store: live,
		Letters: letters.CachedInfo().State.Msgs,
	})
}

func (t tried) tell(w io.Writer) {
	v := t.Verdict
	_, _ = fmt.Fprintf(w, "seed %d: %d episodes of %d users in %.1f s, killed %d times; %d publishes tried again, %d repeated (%d of them stored once more)\n",
		t.Seed, t.Episodes, t.Users, t.Run.Seconds, len(t.Run.Kills), t.Run.Unacknowledged,
		t.Run.RepeatedKnown+t.Run.RepeatedStored, t.Run.RepeatedStored)
	c := v.Checked
	_, _ = fmt.Fprintf(w, "checked: %d scopes, %d episodes, %d facts, %d effects, %d deltas, %d audit rows\n\n",
		c.Scopes, c.Episodes, c.Facts, c.Effects, c.Deltas, c.AuditRows)
	out := table(w, "CHECK", "COUNT")
	for _, check := range []struct {
		name  string
		count int
	}{
		{"lost", v.Lost}, {"duplicated", v.Duplicated}, {"out of order", v.OutOfOrder}, {"wrong", v.Wrong},
		{"ledger unbalanced", v.Unbalanced}, {"audit log off", v.AuditOff}, {"revision gaps", v.RevisionGaps},
	} {
		row(out, check.name, check.count)
	}
	_ = out.Flush()
	_, _ = fmt.Fprintf(w, "\ndigest of live     %s\ndigest of rebuilt  %s\n", v.Digests.Live, v.Digests.Rebuilt)
	for _, f := range v.Findings {
		_, _ = fmt.Fprintf(w, "%s: %s: %s\n", f.Check, f.Where, f.What)
	}
	if t.Dir != "" {
		_, _ = fmt.Fprintf(w, "kept in %s\n", t.Dir)
	}
}
