package events

// The reasons for which a Hold stands in the buffer because of a quarantine.
const (
	// WhyQuarantine is that of a mark: its candidate states nothing, and its Distrust
	// names the messages from which no fact is made in the scope.
	WhyQuarantine = "quarantine"
	// WhyQuarantined is that of a candidate all of whose sources a mark names.
	WhyQuarantined = "quarantined"
)

// Distrust names messages of one fact scope: one of the first three members is set.
type Distrust struct {
	Episode    string `json:"episode,omitempty"`
	Session    string `json:"session,omitempty"`
	SourceNode string `json:"source_node,omitempty"`
	// Request is the correlation id of the quarantine; empty in marks of version 0.1.0.
	Request string `json:"request,omitempty"`
	// Within is what the request was bounded to; nil in marks of version 0.1.0.
	Within *Within `json:"within,omitempty"`
}

// Within names the user and the agent of a request; nil is any.
type Within struct {
	User  *string `json:"user,omitempty"`
	Agent *string `json:"agent,omitempty"`
}

// Names reports whether a message is one of them.
func (d Distrust) Names(e EpisodeRef) bool {
	return d.Episode != "" && e.ID == d.Episode || d.Session != "" && e.Session == d.Session || d.SourceNode != "" && e.SourceNode == d.SourceNode
}
