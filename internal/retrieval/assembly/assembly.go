package assembly

import (
	"strings"
	"unicode/utf8"

	"palimpsest/internal/memory"
)

// Section is a part of the block, its lines best first.
type Section struct {
	Title string
	// Share is the part of the budget that the section has; the unused rest goes to the
	// next one. Sections of share 0 come before all others, may take all of the budget,
	// and are cut last.
	Share float64
	Lines []Line
	// Sorted orders the lines that were chosen, by Line.Order.
	Sorted bool
}

// Line is one fact or episode.
type Line struct {
	ID    string
	Text  string
	Order int64
}

// Block is what was packed.
type Block struct {
	Text   string // empty where no section has a line
	Tokens int
	IDs    []string // of the lines, in their order
}

// maxLine bounds the bytes of a line.
const maxLine = 600

// Pack chooses lines in the order of the sections, each line at most once, and
// returns a block of at most budget tokens. The same sections give the same block.
func Pack(sections []Section, budget int, count func(string) int) Block {
	p := packer{count: count, sections: sections, chosen: make([][]Line, len(sections)), seen: map[string]bool{}}
	frame := count(memory.ContextOpen+"\n") + count(memory.ContextClose+"\n")
	left := budget - frame
	for i, s := range sections {
		if s.Share == 0 {
			left -= p.fill(i, left)
		}
	}
	shared, carried := left, 0.0
	for i, s := range sections {
		if s.Share > 0 {
			carried += s.Share * float64(shared)
			used := p.fill(i, min(left, int(carried)))
			left -= used
			carried -= float64(used)
		}
	}
	return p.fit(budget)
}

type packer struct {
	count    func(string) int
	sections []Section
	chosen   [][]Line
	seen     map[string]bool
}

// fill chooses lines of a section within a budget, and returns what they take. A
// line that does not fit is left out: a shorter one may follow.
func (p *packer) fill(i, budget int) (used int) {
	title := p.count(heading(p.sections[i].Title))
	for _, l := range p.sections[i].Lines {
		if p.seen[l.ID] {
			continue
		}
		l.Text = clean(l.Text)
		takes := p.count(render(l))
		if len(p.chosen[i]) == 0 {
			takes += title
		}
		if used+takes > budget {
			continue
		}
		used += takes
		p.seen[l.ID] = true
		p.chosen[i] = append(p.chosen[i], l)
	}
	return used
}

// fit renders the lines, and drops the last of the last section until the whole is
// within the budget: the tokens of a text may be more than those of its parts.
func (p *packer) fit(budget int) Block {
	for {
		b := p.block()
		if b.Tokens <= budget {
			return b
		}
		p.drop()
	}
}

func (p *packer) drop() {
	for _, shared := range []bool{true, false} {
		for i := len(p.chosen) - 1; i >= 0; i-- {
			if n := len(p.chosen[i]); n > 0 && (p.sections[i].Share > 0) == shared {
				p.chosen[i] = p.chosen[i][:n-1]
				return
			}
		}
	}
}

func (p *packer) block() Block {
	var out Block
	var b strings.Builder
	for i, s := range p.sections {
		lines := p.chosen[i]
		if len(lines) == 0 {
			continue
		}
		if s.Sorted {
			lines = inOrder(lines)
		}
		b.WriteString(heading(s.Title))
		for _, l := range lines {
			b.WriteString(render(l))
			out.IDs = append(out.IDs, l.ID)
		}
	}
	if b.Len() == 0 {
		return out
	}
	out.Text = memory.ContextOpen + "\n" + b.String() + memory.ContextClose + "\n"
	out.Tokens = p.count(out.Text)
	return out
}

func heading(title string) string { return "## " + title + "\n" }

func render(l Line) string { return "- " + l.Text + " [" + l.ID + "]\n" }

// clean makes one line of text that no reader takes for the end of the block.
func clean(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	for strings.Contains(text, memory.ContextOpen) || strings.Contains(text, memory.ContextClose) {
		text = strings.ReplaceAll(strings.ReplaceAll(text, memory.ContextOpen, ""), memory.ContextClose, "")
	}
	if len(text) <= maxLine {
		return text
	}
	cut := maxLine
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + "…"
}
