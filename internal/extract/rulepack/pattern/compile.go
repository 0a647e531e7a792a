package pattern

import (
	"fmt"
	"slices"
	"strings"

	"palimpsest/internal/extract/rulepack/grammar"
)

type opcode uint8

const (
	opWord opcode = iota
	opSet
	opCapture
	opSplit // try the next instruction, then to
	opJump
	opStop
	opGreeted
	opMatch
)

type captureType uint8

const (
	capNoun captureType = iota
	capRest
	capAll // to the end of the clause
	capVerb
	capName
	capAnyName
	capNumber
	capDigits // a run of numbers, as in a telephone number
	capWord
	capSet
	capGerund // a noun phrase that begins with a verb's -ing
	capEnds   // a noun phrase whose last word is in a set
	capPlace  // a noun phrase with prepositions of place
	capWhen   // the date of the clause
	capMoney
	capMail // an e-mail address
)

// phrasal reports whether a capture runs on over prepositions.
func (t captureType) phrasal() bool { return t == capRest || t == capVerb || t == capGerund }

// instruction is one step. The packs have tens of thousands of them.
type instruction struct {
	word string
	set  grammar.Phrases
	slot int
	to   int
	op   opcode
	typ  captureType
}

// Pattern is a compiled pattern.
type Pattern struct {
	code []instruction
	// Slots are the names of the captures.
	Slots []string
	// Heads are the words that a match can begin with; nil means any.
	Heads map[string]bool
	list  bool
}

// Words are the words that the pattern is written with.
func (p *Pattern) Words() []string {
	var out []string
	for _, in := range p.code {
		if in.op == opWord {
			out = append(out, in.word)
		}
	}
	return out
}

type compiler struct {
	src  []string
	at   int
	sets map[string]grammar.Phrases
	last captureType
	p    *Pattern
}

// Compile reads one pattern; list says that its last capture may be several.
func Compile(src string, sets map[string]grammar.Phrases, list bool) (*Pattern, error) {
	c := &compiler{src: lexPattern(src), sets: sets, p: &Pattern{list: list}}
	open := false
	if n := len(c.src); n > 0 && c.src[n-1] == "..." {
		c.src = c.src[:n-1]
		open = n > 1 && !strings.HasPrefix(c.src[n-2], "{")
	}
	if len(c.src) == 0 {
		return nil, fmt.Errorf("pattern is empty")
	}
	if err := c.sequence(); err != nil {
		return nil, err
	}
	if c.at < len(c.src) {
		return nil, fmt.Errorf("unexpected %q", c.src[c.at])
	}
	if !open {
		c.emit(instruction{op: opStop, typ: c.last})
	}
	c.emit(instruction{op: opMatch})
	c.p.code = slices.Clone(c.p.code) // without room to grow
	c.p.Heads = make(map[string]bool)
	if !c.p.first(0, c.p.Heads, 0) {
		c.p.Heads = nil
	}
	return c.p, nil
}

func lexPattern(src string) []string {
	for _, mark := range []string{"(", ")", "|", "?"} {
		src = strings.ReplaceAll(src, mark, " "+mark+" ")
	}
	return strings.Fields(src)
}

func (c *compiler) emit(i instruction) int {
	c.p.code = append(c.p.code, i)
	return len(c.p.code) - 1
}

func (c *compiler) sequence() error {
	for c.at < len(c.src) && c.src[c.at] != ")" && c.src[c.at] != "|" {
		from := len(c.p.code)
		if err := c.element(); err != nil {
			return err
		}
		if c.at < len(c.src) && c.src[c.at] == "?" {
			c.at++
			c.insert(from, instruction{op: opSplit, to: len(c.p.code) + 1})
		}
	}
	return nil
}

// insert puts an instruction at i and moves what jumps behind it.
func (c *compiler) insert(i int, in instruction) {
	c.p.code = slices.Insert(c.p.code, i, in)
	for j := i + 1; j < len(c.p.code); j++ {
		if op := c.p.code[j].op; op == opSplit || op == opJump {
			c.p.code[j].to++
		}
	}
}

func (c *compiler) element() error {
	word := c.src[c.at]
	c.at++
	switch {
	case word == "(":
		return c.group()
	case word == "?":
		return fmt.Errorf("? follows nothing")
	case word == "<greeted>":
		c.emit(instruction{op: opGreeted})
	case strings.HasPrefix(word, "@"):
		set, ok := c.sets[word[1:]]
		if !ok {
			return fmt.Errorf("unknown set %s", word)
		}
		c.emit(instruction{op: opSet, set: set})
	case strings.HasPrefix(word, "{"):
		return c.capture(word)
	default:
		c.emit(instruction{op: opWord, word: word})
	}
	return nil
}

func (c *compiler) group() error {
	var jumps []int
	for {
		from := len(c.p.code)
		if err := c.sequence(); err != nil {
			return err
		}
		if c.at == len(c.src) {
			return fmt.Errorf("( is not closed")
		}
		closed := c.src[c.at] == ")"
		c.at++
		if closed {
			break
		}
		jumps = append(jumps, c.emit(instruction{op: opJump}))
		c.insert(from, instruction{op: opSplit, to: len(c.p.code) + 1})
		jumps[len(jumps)-1]++
	}
	for _, j := range jumps {
		c.p.code[j].to = len(c.p.code)
	}
	return nil
}

func (c *compiler) capture(word string) error {
	inner, ok := strings.CutSuffix(word[1:], "}")
	if !ok {
		return fmt.Errorf("%s is not closed", word)
	}
	name, typ, _ := strings.Cut(inner, ":")
	if name == "" {
		return fmt.Errorf("%s captures under no name", word)
	}
	in := instruction{op: opCapture, slot: slices.Index(c.p.Slots, name)}
	if in.slot < 0 {
		in.slot = len(c.p.Slots)
		c.p.Slots = append(c.p.Slots, name)
	}
	switch typ {
	case "", "np":
		in.typ = capNoun
	case "rest":
		in.typ = capRest
	case "verb":
		in.typ = capVerb
	case "name":
		in.typ = capName
	case "anyname":
		in.typ = capAnyName
	case "num":
		in.typ = capNumber
	case "digits":
		in.typ = capDigits
	case "word":
		in.typ = capWord
	case "all":
		in.typ = capAll
	case "ing":
		in.typ = capGerund
	case "place":
		in.typ = capPlace
	case "when":
		in.typ = capWhen
	case "money":
		in.typ = capMoney
	case "mail":
		in.typ = capMail
	default:
		set, found := c.sets[typ[1:]]
		if !found || typ[0] != '@' && typ[0] != '*' {
			return fmt.Errorf("%s: unknown type %q", word, typ)
		}
		in.typ, in.set = capSet, set
		if typ[0] == '*' {
			in.typ = capEnds
		}
	}
	c.last = in.typ
	c.emit(in)
	return nil
}

// first collects the words a match from pc can begin with; false means any.
func (p *Pattern) first(pc int, into map[string]bool, depth int) bool {
	if depth > 64 {
		return false
	}
	switch in := p.code[pc]; in.op {
	case opWord:
		into[in.word] = true
	case opSet:
		for w := range in.set {
			into[w] = true
		}
	case opSplit:
		return p.first(pc+1, into, depth+1) && p.first(in.to, into, depth+1)
	case opJump:
		return p.first(in.to, into, depth+1)
	case opGreeted:
		return p.first(pc+1, into, depth+1)
	case opCapture:
		if in.typ != capSet {
			return false
		}
		for w := range in.set {
			if strings.HasPrefix(w, "*") {
				return false
			}
			into[w] = true
		}
	default:
		return false
	}
	return true
}
