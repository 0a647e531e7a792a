package api

import "time"

// Undo chooses deltas to take back: those that match every member that is given, at
// least one of Request, Episode, RuleRun, SourceNode, Session, Rule and Since.
type Undo struct {
	User       *string `json:"user,omitempty" doc:"Only in the memory of this user. Left out: any user."`
	Agent      *string `json:"agent,omitempty" doc:"Only in the memory of this agent. Left out: any agent."`
	Request    string  `json:"request,omitempty" doc:"What came of one request: its correlation_id. That of an undo brings back what the undo took back." maxLength:"256"`
	Episode    string  `json:"episode,omitempty" doc:"What came of one message, by its id." maxLength:"256"`
	RuleRun    uint64  `json:"rule_run,omitempty" doc:"What one run of a rule decided: the sequence of its effect in the audit stream."`
	SourceNode string  `json:"source_node,omitempty" doc:"What came of the messages of one source_node." maxLength:"256"`
	Session    string  `json:"session,omitempty" doc:"What came of one session." maxLength:"256"`
	Rule       string  `json:"rule,omitempty" doc:"What a consolidation rule decided, or a pattern, key or prompt by its rule_id." maxLength:"256"`
	Since      string  `json:"since,omitempty" doc:"Effects that were committed at this time or later: RFC 3339 or YYYY-MM-DD."`
	// Include names facts of conflicts that are taken back nevertheless, with the
	// later deltas that touched them.
	Include []string `json:"include,omitempty" doc:"Facts of conflicts to take back nevertheless, with what changed them later; all for all of them."`
	DryRun  bool     `json:"dry_run,omitempty" doc:"Only tell what would change."`
}

// UndoPlan lists the changes of an undo, and the facts that it leaves alone.
type UndoPlan struct {
	Changes   []UndoChange   `json:"changes"`
	Conflicts []UndoConflict `json:"conflicts"`
	// Omitted counts further changes and conflicts.
	Omitted int `json:"omitted,omitempty" doc:"How many more changes and conflicts there are."`
}

// UndoChange is one fact, or one held candidate, that an undo takes back.
type UndoChange struct {
	Scope
	Event    string `json:"event" enum:"DELETE,UPDATE,DISMISS,HOLD" doc:"DELETE closes a fact, UPDATE brings a former version back, DISMISS and HOLD concern what is held."`
	ID       string `json:"id"`
	Revision uint64 `json:"revision,omitempty" doc:"The newest of the fact before the undo."`
	Memory   string `json:"memory,omitempty" doc:"What holds afterwards."`
}

// UndoConflict is a fact that later deltas touched. It stays as it is.
type UndoConflict struct {
	Scope
	ID     string      `json:"id"`
	Memory string      `json:"memory" doc:"What the fact says now."`
	Why    string      `json:"why"`
	Later  []UndoTouch `json:"later,omitempty" doc:"The later deltas."`
}

// UndoTouch is a delta that touched a fact later.
type UndoTouch struct {
	DeltaID   string    `json:"delta_id"`
	Kind      string    `json:"kind" enum:"add,update,delete,noop"`
	Reason    string    `json:"reason"`
	RequestID string    `json:"request_id,omitempty"`
	Sources   []string  `json:"source_episode_ids,omitempty"`
	At        time.Time `json:"at"`
}

// Quarantine names messages that are not trusted: exactly one of Episode, Session and
// SourceNode is set.
type Quarantine struct {
	User       *string `json:"user,omitempty" doc:"Only in the memory of this user. Left out: any user."`
	Agent      *string `json:"agent,omitempty" doc:"Only in the memory of this agent. Left out: any agent."`
	Episode    string  `json:"episode,omitempty" doc:"One message, by its id." maxLength:"256"`
	Session    string  `json:"session,omitempty" doc:"All messages of a session." maxLength:"256"`
	SourceNode string  `json:"source_node,omitempty" doc:"All messages of a source_node." maxLength:"256"`
}
