package mem0

import (
	"strings"

	"palimpsest/pkg/api"
)

// rating is the body of a rating of one memory, and its answer. Feedback is POSITIVE,
// NEGATIVE, VERY_NEGATIVE or null, which takes an earlier rating back.
type rating struct {
	ID       string  `json:"id"`
	MemoryID string  `json:"memory_id"`
	Feedback *string `json:"feedback"`
	Reason   *string `json:"feedback_reason"`
}

// feedback rates a memory. The id of the answer is that of the request, under which
// the audit stream has the rating.
func feedback(c *call) (any, error) {
	var b rating
	if err := c.body(&b); err != nil {
		return nil, err
	}
	if b.MemoryID == "" {
		return nil, invalid("memory_id is empty")
	}
	in := api.Feedback{FactID: b.MemoryID, Rating: "none"}
	if b.Feedback != nil {
		in.Rating = strings.ToLower(*b.Feedback)
	}
	if b.Reason != nil {
		in.Reason = *b.Reason
	}
	w, err := c.Client.Feedback(c.Context(), in)
	b.ID = w.CorrelationID
	return b, err
}
