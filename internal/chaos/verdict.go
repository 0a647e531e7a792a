package chaos

import (
	"context"
	"fmt"

	"palimpsest/internal/audit"
	"palimpsest/internal/cursor"
	"palimpsest/internal/pipeline"
	"palimpsest/internal/store"
	"palimpsest/pkg/scope"
)

// Evidence is what stopped processes left. Nothing of it is changed.
type Evidence struct {
	// Episodes is the stream of episodes.
	Episodes interface {
		Read(ctx context.Context, after uint64, yield func([]*pipeline.Entry) error) (cursor.Cursor, error)
	}
	Journal audit.Reader
	Log     audit.Log
	Store   interface {
		store.StateReader
		store.EpisodeReader
		store.FactReader
		store.Ledger
		store.Exporter
	}
	// Letters counts all dead letters, also dropped ones. No message of a workload
	// deserves one.
	Letters uint64
}

// Verdict is what a run comes to. Every count must be zero.
type Verdict struct {
	OK bool `json:"ok"`
	// Lost are acknowledged episodes that are gone or were skipped, and facts that
	// must be known and are not.
	Lost int `json:"lost"`
	// Pending are acknowledged episodes that are kept and were not stored or
	// consolidated when the run ended. The facts of their users are not judged.
	Pending int `json:"pending"`
	// Duplicated are episodes, facts, deltas and revisions that are there twice.
	Duplicated int `json:"duplicated"`
	// OutOfOrder counts episodes that follow a later one of the same publisher, and
	// facts whose value is not the last published one.
	OutOfOrder int `json:"out_of_order"`
	// Wrong counts unexpected facts and episodes, those with another content or
	// other sources, and scopes without a publisher.
	Wrong int `json:"wrong"`
	// Unbalanced are accounts of the ledger that do not add up.
	Unbalanced int `json:"unbalanced"`
	// AuditOff are rows of the audit log that AUDIT has and the log has not, the
	// other way round, or that differ.
	AuditOff int `json:"audit_off"`
	// RevisionGaps are revisions of a scope that AUDIT should have and has not.
	RevisionGaps int     `json:"revision_gaps"`
	Digests      Digests `json:"digests"`
	// Shapes is set where two shapes were told the same.
	Shapes *Shapes `json:"shapes,omitempty"`

	Checked Checked `json:"checked"`
	// Findings say what was counted, [MaxFindings] at most.
	Findings []Finding `json:"findings"`
}

// Checked is how much was looked at.
type Checked struct {
	Scopes    int `json:"scopes"`
	Episodes  int `json:"episodes"`
	Facts     int `json:"facts"`
	Effects   int `json:"effects"`
	Deltas    int `json:"deltas"`
	AuditRows int `json:"audit_rows"`
}

// Finding is one thing that is not as it must be.
type Finding struct {
	Check string `json:"check"`
	Where string `json:"where"`
	What  string `json:"what"`
}

// MaxFindings bounds the list; the counts go on.
const MaxFindings = 100

// judge is one judgement under way.
type judge struct {
	record   Record
	workload *Workload
	evidence Evidence
	verdict  Verdict
	// gone are the acknowledged episodes that EPISODES does not hold, waiting those
	// of a user that are not consolidated.
	gone    map[string]bool
	waiting map[scope.Scope]uint64
}

// Judge compares the evidence with the record. It returns an error if the evidence
// cannot be read. [Verdict.Compare] adds the digests.
func Judge(ctx context.Context, r Record, w *Workload, e Evidence) (Verdict, error) {
	j := &judge{record: r, workload: w, evidence: e, gone: map[string]bool{}, waiting: map[scope.Scope]uint64{}}
	j.verdict.Findings = []Finding{}
	if r.Run.Stuck != "" {
		j.count(&j.verdict.Pending, "progress", "the run", "%s", r.Run.Stuck)
	}
	if e.Letters > 0 {
		j.count(&j.verdict.Lost, "dead letters", "DEADLETTER", "%d messages were refused", e.Letters)
	}
	for _, check := range []func(context.Context) error{j.stream, j.users, j.foreign, j.ledger, j.effects} {
		if err := check(ctx); err != nil {
			return j.verdict, fmt.Errorf("judge: %w", err)
		}
	}
	return j.verdict, nil
}

// count adds one to a figure and says why.
func (j *judge) count(figure *int, check, where, what string, args ...any) {
	*figure++
	j.verdict.find(check, where, what, args...)
}

func (v *Verdict) find(check, where, what string, args ...any) {
	if len(v.Findings) < MaxFindings {
		v.Findings = append(v.Findings, Finding{Check: check, Where: where, What: fmt.Sprintf(what, args...)})
	}
}

// acknowledged lists the acknowledged episodes of a publisher, in the order in which
// it first sent them.
func (j *judge) acknowledged(voice int) (episodes []int) {
	steps := j.workload.Voices[voice].Steps
	for _, s := range steps[:len(j.record.Acks[voice])] {
		if s.Again == First {
			episodes = append(episodes, s.Episode)
		}
	}
	return episodes
}

// ledger checks that the accounts balance and cover all acknowledged messages.
func (j *judge) ledger(ctx context.Context) error {
	accounts, err := j.evidence.Store.Accounts(ctx, scope.Selector{Project: scope.DefaultProject}, j.record.Rules)
	if err != nil {
		return err
	}
	type account struct {
		scope scope.Scope
		rule  string
	}
	of := map[account]store.Account{}
	for _, a := range accounts {
		of[account{a.Scope, a.Rule}] = a
	}
	published := make([]map[int]bool, len(j.workload.Users))
	for n, voice := range j.workload.Voices {
		if published[voice.User] == nil {
			published[voice.User] = map[int]bool{}
		}
		for _, e := range j.acknowledged(n) {
			published[voice.User][e] = true
		}
	}
	for n, user := range j.workload.Users {
		for _, rule := range j.record.Rules {
			j.account(user.Name+" "+rule, of[account{user.scope(), rule}], uint64(len(published[n])))
		}
	}
	return nil
}

func (j *judge) account(where string, a store.Account, published uint64) {
	v := &j.verdict
	if !a.Balanced() {
		j.count(&v.Unbalanced, "ledger", where, "does not balance: %+v", a)
	}
	if a.Accepted != published {
		j.count(&v.Unbalanced, "ledger", where, "%d episodes accepted, %d acknowledged", a.Accepted, published)
	}
	if a.Pending > 0 {
		j.count(&v.Pending, "ledger", where, "%d episodes wait to be consolidated", a.Pending)
		v.Pending += int(a.Pending) - 1
	}
	if a.Skipped > 0 {
		j.count(&v.Lost, "ledger", where, "%d episodes skipped", a.Skipped)
		v.Lost += int(a.Skipped) - 1
	}
}
