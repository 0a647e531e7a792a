package bench

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"palimpsest/internal/bench/usage"
	"palimpsest/pkg/api"
)

// The targets of a process that holds 10,000 episodes of 60 bytes by 50 users,
// in MiB: 185 and 60 MB, of which 25 and 15 MB are for the semantic table.
const (
	residentTarget = 176
	diskTarget     = 57
	footprintUsers = 50
	footprintBytes = 60
)

// measureFootprint measures how much memory and disk episodes of one sentence take,
// and the increase after as many again. It runs once: most of it is waiting until
// the process is idle.
func measureFootprint(ctx context.Context, b *bench) (figures []Figure, err error) {
	err = b.with(ctx, PeerWhole, func(p *peer) error {
		var taken [2]footprint
		for turn := range taken {
			if taken[turn], err = b.footprint(ctx, p, turn); err != nil {
				return err
			}
		}
		figures = footprintFigures(taken)
		return nil
	})
	return figures, err
}

// footprint is the memory and disk of a process, in MiB.
type footprint struct {
	busy, resident float64
	parts          [len(footprintParts)]float64
}

// footprintParts are the parts of a data directory, by the prefix of their paths;
// the last is the rest.
var footprintParts = [...]struct{ name, prefix string }{
	{"memory", "memory.db"},
	{"auditlog", "audit.db"},
	{"episodes", "nats/jetstream/PALIMPSEST/streams/EPISODES/"},
	{"audit", "nats/jetstream/PALIMPSEST/streams/AUDIT/"},
	{"other", ""},
}

func (f footprint) disk() (sum float64) {
	for _, part := range f.parts {
		sum += part
	}
	return sum
}

// footprint publishes the episodes of a turn, waits until they are consolidated
// and the process has rested, and measures.
func (b *bench) footprint(ctx context.Context, p *peer, turn int) (out footprint, err error) {
	if _, err := p.publish(ctx, anonymous, sentences(turn*b.sentences, b.sentences), (*publisher).windowed); err != nil {
		return out, err
	}
	done := uint64((turn + 1) * b.sentences)
	if err := p.account(ctx, func(a api.Account) bool { return a.Consolidated == done }); err != nil {
		return out, fmt.Errorf("await consolidation: %w", err)
	}
	out.busy = usage.ResidentMiB(p.command.Process.Pid)
	select {
	case <-time.After(b.rest):
	case <-ctx.Done():
		return out, ctx.Err()
	}
	out.resident = usage.ResidentMiB(p.command.Process.Pid)
	return out, out.measure(p.dir)
}

// measure adds up the files of a data directory.
func (f *footprint) measure(dir string) error {
	return filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // removed meanwhile
		}
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("measure files: %w", err)
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return fmt.Errorf("measure files: %w", err)
		}
		for i, part := range footprintParts {
			if strings.HasPrefix(filepath.ToSlash(name), part.prefix) {
				f.parts[i] += float64(info.Size()) / (1 << 20)
				break
			}
		}
		return nil
	})
}

func footprintFigures(taken [2]footprint) []Figure {
	first, second := taken[0], taken[1]
	figure := func(name string, value, target float64) Figure {
		return Figure{Name: "footprint." + name, Spread: spread(unitMiB, []float64{value}), Better: Lower, Target: target}
	}
	figures := []Figure{figure("disk", first.disk(), diskTarget)}
	for i, part := range footprintParts {
		figures = append(figures, figure("disk."+part.name, first.parts[i], 0))
	}
	figures = append(figures, figure("disk.growth", second.disk()-first.disk(), 0))
	for i, part := range footprintParts {
		figures = append(figures, figure("disk.growth."+part.name, second.parts[i]-first.parts[i], 0))
	}
	if first.resident > 0 { // where the system tells
		figures = append(figures, figure("memory", first.resident, residentTarget), figure("memory.busy", first.busy, 0),
			figure("memory.growth", second.resident-first.resident, 0))
	}
	return figures
}

// sentences are messages of one sentence each, from the nth on.
func sentences(from, n int) []message {
	all := make([]message, n)
	for i := range all {
		at := from + i
		text := fmt.Sprintf(statements[at/footprintUsers%len(statements)], name(at))
		words := word(at % vocabulary)
		for len(text)+len(words) < footprintBytes-1 {
			words += " " + word((at+len(words))%vocabulary)
		}
		all[i] = say("resident", at%footprintUsers, text[:len(text)-1]+" "+words+".")
	}
	return all
}
