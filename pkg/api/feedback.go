package api

// Feedback rates a fact, or an answer. It changes no fact.
type Feedback struct {
	Scope
	FactID    string `json:"fact_id,omitempty" doc:"The fact that is rated, or its last 8 hex digits." maxLength:"256"`
	EpisodeID string `json:"episode_id,omitempty" doc:"The answer that is rated: a message of the user and agent that the body names." maxLength:"256"`
	Rating    string `json:"rating" enum:"positive,negative,very_negative,none" doc:"none takes an earlier rating back."`
	Reason    string `json:"reason,omitempty" doc:"Why, in your words. The audit stream keeps it." maxLength:"2000"`
}
