package events

// DeltasDecided is a decided batch: of a tick, or of a command.
type DeltasDecided struct {
	Batch
	// Command is set on the deltas of a command; such a batch has no range, and
	// no basis but where Asked is set.
	Command *CommandRef `json:"command,omitempty"`
	// Asked is the whole command, if the decision used more than the facts that it
	// names. It is decided again if its footprint changed since the basis.
	Asked *CommandRequested `json:"asked,omitempty"`
	// Basis is the scope revision the batch was decided on; BasisSequence is where
	// that revision stands in AUDIT.
	Basis         uint64 `json:"basis"`
	BasisSequence uint64 `json:"basis_sequence,omitempty"`
	// Footprint is what the decision looked at. Batches of versions before it was
	// introduced have none, and are stale as soon as the scope has another
	// revision than the basis.
	Footprint *Footprint `json:"footprint,omitempty"`

	SessionEnds []SessionEnd `json:"session_ends,omitempty"`
	Episodes    []EpisodeRef `json:"episodes,omitempty"`
	Deltas      Deltas       `json:"deltas,omitempty"`
	// Mentions holds, per delta id, the entities its fact names.
	Mentions map[string][]Mention `json:"mentions,omitempty"`
	// Candidates travel on, so that a stale batch can be decided again.
	Candidates []Candidate `json:"candidates,omitempty"`
}

// Kind implements [Payload].
func (DeltasDecided) Kind() Kind { return KindDeltasDecided }

// Validate implements [Payload].
func (d DeltasDecided) Validate() error {
	if d.Command != nil {
		if err := d.Command.validate(); err != nil {
			return err
		}
		return d.Header.validate()
	}
	return d.Batch.validate()
}

// Footprint is what a decision looked at in the known facts of its scope. The
// decision is stale if any of it changed since its basis, and stands whatever
// else changed. The zero Footprint is that of a decision that looked at nothing.
type Footprint struct {
	// Facts maps the ids of facts to the revision that was read; 0 stands for an
	// id that no fact had.
	Facts map[string]uint64 `json:"facts,omitempty"`
	// Hashes are the md5 of texts for which equal facts were looked up. Facts with
	// similar texts were looked up for the candidates among them.
	Hashes []string `json:"hashes,omitempty"`
	// Keys are the subjects and predicates that were looked up, with an Object
	// where only facts with that object, or of cardinality one, were.
	Keys []Triple `json:"keys,omitempty"`
}
