package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"palimpsest/internal/app"
	"palimpsest/internal/chaos"
	"palimpsest/internal/terminal"
)

// progressLine rewrites one line on a terminal, and says little elsewhere.
func progressLine(to io.Writer) (tell func(chaos.Progress), end func()) {
	live := terminal.Is(to)
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

// tried is a run and its result.
type tried struct {
	chaos.Size
	Run     chaos.Figures `json:"run"`
	Verdict chaos.Verdict `json:"verdict"`
	Dir     string        `json:"dir,omitempty"` // where it is kept
}

// verdict judges the data that the run left in the engines.
func (t *trial) verdict() (out tried, err error) {
	ctx := t.inv.Context()
	record, workload, err := chaos.ReadRecord(t.dir)
	if err != nil {
		return out, err
	}
	out.Size, out.Run = record.Size, record.Run
	if out.Verdict, err = app.JudgeEngines(ctx, t.cfg, record, workload); err != nil {
		return out, err
	}
	digests, failed := chaos.Rebuild(ctx, t.program, t.dir, t.plan)
	out.Verdict.Compare(digests, failed)
	if _, missing := os.Stat(t.calm()); missing == nil { // a comparison was requested
		err = app.CompareEngines(ctx, t.cfg, app.OwnEngines(t.calm()), &out.Verdict, workload)
	}
	return out, errors.Join(err, ctx.Err())
}

func (t tried) tell(w io.Writer) {
	v := t.Verdict
	_, _ = fmt.Fprintf(w, "seed %d: %d episodes of %d users in %.1f s, killed %d times; %d publishes tried again, %d repeated (%d of them stored once more)\n",
		t.Seed, t.Episodes, t.Users, t.Run.Seconds, len(t.Run.Kills), t.Run.Unacknowledged,
		t.Run.RepeatedKnown+t.Run.RepeatedStored, t.Run.RepeatedStored)
	t.tellKills(w)
	c := v.Checked
	_, _ = fmt.Fprintf(w, "checked: %d scopes, %d episodes, %d facts, %d effects, %d deltas, %d audit rows\n\n",
		c.Scopes, c.Episodes, c.Facts, c.Effects, c.Deltas, c.AuditRows)
	out := terminal.NewTable(w, "CHECK", "COUNT")
	for _, check := range []struct {
		name  string
		count any
	}{
		{"lost", v.Lost}, {"not done yet", v.Pending}, {"duplicated", v.Duplicated}, {"out of order", v.OutOfOrder}, {"wrong", v.Wrong},
		{"ledger unbalanced", v.Unbalanced}, {"audit log off", v.AuditOff}, {"revision gaps", v.RevisionGaps},
	} {
		out.Row(check.name, check.count)
	}
	out.Flush()
	_, _ = fmt.Fprintf(w, "\ndigest of live     %s\ndigest of rebuilt  %s\n", v.Digests.Live, v.Digests.Rebuilt)
	if s := v.Shapes; s != nil {
		_, _ = fmt.Fprintf(w, "\ncontent of several processes  %s\ncontent of one process        %s\n", s.Several, s.One)
	}
	for _, f := range v.Findings {
		_, _ = fmt.Fprintf(w, "%s: %s: %s\n", f.Check, f.Where, f.What)
	}
	if t.Dir != "" {
		_, _ = fmt.Fprintf(w, "kept in %s\n", t.Dir)
	}
}

// tellKills says what the kills cost.
func (t tried) tellKills(w io.Writer) {
	ready := figures{}
	for _, k := range t.Run.Kills {
		if k.ReadyMS > 0 {
			ready = append(ready, k.ReadyMS)
		}
	}
	if len(ready) > 0 {
		_, _ = fmt.Fprintf(w, "ready again after %s; %d episodes were left to do at the last kill, and done %.1f s later\n",
			ready, t.Run.Backlog, t.Run.DrainSeconds)
	}
}

// figures are milliseconds.
type figures []int64

func (f figures) String() string {
	if len(f) == 0 {
		return "nothing"
	}
	slices.Sort(f)
	seconds := func(ms int64) float64 { return float64(ms) / 1000 }
	return fmt.Sprintf("%.1f s (p50; at most %.1f s)", seconds(f[len(f)/2]), seconds(f[len(f)-1]))
}
