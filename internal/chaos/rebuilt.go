package chaos

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
)

// Digests are those of the memory store and of a store that was rebuilt from
// EPISODES and AUDIT.
type Digests struct {
	Live    string `json:"live"`
	Rebuilt string `json:"rebuilt"`
	// Moved are places at which only one of the two has an episode, or another
	// one; no digest tells.
	Moved int `json:"moved"`
}

// Rebuild rebuilds memory beside the live one, as a user would, and returns
// both digests. The store of the stopped processes stays as it is.
func Rebuild(ctx context.Context, program, dir string, of Plan) (Digests, error) {
	var out, log bytes.Buffer
	args := of.command([]string{"rebuild", "--data", Data(dir), "--check", "--json"})
	cmd := exec.CommandContext(ctx, program, args...) //nolint:gosec // it is this program
	cmd.Env, cmd.Stdout, cmd.Stderr = of.environ(), &out, &log
	run := cmd.Run() // digests that differ are an error, and are printed
	var d Digests
	if json.Unmarshal(out.Bytes(), &d) == nil && d.Rebuilt != "" {
		return d, nil
	}
	if ctx.Err() != nil {
		return d, ctx.Err()
	}
	return d, fmt.Errorf("rebuild: %w: %s", errors.Join(run), strings.TrimSpace(log.String()))
}

// Compare adds the digests to the verdict, and concludes it. failed says why
// there are none.
func (v *Verdict) Compare(d Digests, failed error) {
	v.Digests = d
	switch {
	case failed != nil:
		v.find("digest", "memory", "%v", failed)
	case d.Live != d.Rebuilt:
		v.find("digest", "memory", "live %s, rebuilt %s", d.Live, d.Rebuilt)
	case d.Moved > 0:
		v.find("digest", "memory", "%d places hold another episode once it is rebuilt, or none", d.Moved)
	}
	v.OK = failed == nil && d.Moved == 0 && d.Live != "" && d.Live == d.Rebuilt &&
		v.Lost+v.Pending+v.Duplicated+v.OutOfOrder+v.Wrong+v.Unbalanced+v.AuditOff+v.RevisionGaps == 0
}
