package memory

import (
	"time"

	"palimpsest/internal/filter"
	"palimpsest/pkg/events"
)

// The ids of the rules that ship.
const (
	RuleTurn        = "turn"        // every episode; rule packs, what the policy commits at once
	RuleSleep       = "sleep"       // session end, every 100, 03:00; the full extractor
	RuleMaintenance = "maintenance" // 03:00
	RuleAdd         = "add"         // an API caller who waits or brings a prompt
	RuleVerbatim    = "verbatim"    // one who wants no inference
)

// Rule says when the episodes of a scope are consolidated, by what, and what
// may come of it.
type Rule struct {
	ID      string
	Cadence Cadence
	// Then lists the kinds it may emit; empty means all.
	Then []events.FactKind
	// Class is what the rule costs; empty means events.ClassRules. Its ticks,
	// candidates and deltas travel apart from those of the other class.
	Class events.Class
	// Extractor and Decider name implementations; empty means the configured.
	Extractor string
	Decider   string
	// Steps are those of maintenance. A rule that has any reads no episodes, and is
	// due by Cron alone.
	Steps []string
	// When keeps the episodes that the rule reads; nil keeps all. Those that it
	// leaves out count as read. Where is its text.
	When  filter.Expr
	Where string
	// Prompt and DecisionPrompt replace the tasks of the configured prompts where
	// they are not empty.
	Prompt, DecisionPrompt string
	// Streaming says that a model may read every message by itself.
	Streaming bool
	// CommitOnly leaves what the write policy would hold to the other enabled
	// rules, which read the same episodes later: the batch loses the candidate.
	// Where no other rule may emit it, it becomes a NOOP held.
	CommitOnly bool
	Enabled    bool
}

// Cadence says when a rule is due; any of its members suffices.
type Cadence struct {
	// Every is a number of episodes of a fact scope; 0 for never.
	Every uint64
	// Cron is a five-field cron expression in Location; empty for never.
	Cron       string
	Location   *time.Location // nil means UTC
	SessionEnd bool
	// Request: for episodes that ask for a tick of their own. Such a rule has no
	// watermark; its ticks take their turn among those of the rule that [Answering]
	// names, and move its watermark.
	Request bool
}

// Readers returns the ids of the enabled rules that read all episodes in order.
func Readers(rules []Rule) (ids []string) {
	for _, r := range rules {
		if r.Enabled && r.Reads() {
			ids = append(ids, r.ID)
		}
	}
	return ids
}

// Answering returns the rule that reads every episode when it comes: the first one
// that is enabled and due after each.
func Answering(rules []Rule) (Rule, bool) {
	for _, r := range rules {
		if r.Enabled && r.Reads() && r.Cadence.Every == 1 {
			return r, true
		}
	}
	return Rule{}, false
}

// Requested returns the rule of requests, where there is one and one that answers.
func Requested(rules []Rule) (Rule, bool) {
	if _, ok := Answering(rules); ok {
		for _, r := range rules {
			if r.Enabled && r.Cadence.Request {
				return r, true
			}
		}
	}
	return Rule{}, false
}

// Reads reports whether the rule reads all episodes in order, below a watermark of its
// own.
func (r Rule) Reads() bool { return len(r.Steps) == 0 && !r.Cadence.Request }

// Emits reports whether the rule may emit facts of kind k.
func (r Rule) Emits(k events.FactKind) bool {
	if len(r.Then) == 0 {
		return true
	}
	for _, t := range r.Then {
		if t == k {
			return true
		}
	}
	return false
}
