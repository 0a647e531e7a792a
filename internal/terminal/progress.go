package terminal

import (
	"fmt"
	"io"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

// Progress shows how far long work is: a bar on a terminal, elsewhere a line as
// each part ends.
type Progress struct {
	to   io.Writer
	bars *mpb.Progress // nil where there is no terminal
}

// NewProgress returns one that draws to a writer.
func NewProgress(to io.Writer) *Progress {
	p := &Progress{to: to}
	if Is(to) {
		p.bars = mpb.New(mpb.WithOutput(to))
	}
	return p
}

// Part begins a part of the work of which there are about total units. step
// counts some of them; end says that there are no more.
func (p *Progress) Part(name string, total uint64) (step func(n int), end func()) {
	began, count := time.Now(), 0
	if p.bars == nil {
		return func(n int) { count += n }, func() {
			_, _ = fmt.Fprintf(p.to, "%s: %d in %v\n", name, count, time.Since(began).Round(time.Millisecond))
		}
	}
	bar := p.bars.AddBar(int64(total),
		mpb.PrependDecorators(decor.Name(name+" ", decor.WCSyncSpaceR), decor.CountersNoUnit("%d / %d")),
		mpb.AppendDecorators(decor.AverageSpeed(0, "%.0f/s")))
	return bar.IncrBy, func() { bar.SetTotal(-1, true) }
}

// Wait lets the last picture be drawn.
func (p *Progress) Wait() {
	if p.bars != nil {
		p.bars.Wait()
	}
}
