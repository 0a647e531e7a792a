package grammar

// Class is a set of the closed classes a word may be in.
type Class uint64

// The classes. Each is a list of [Lexicon] that says what its words do.
const (
	Speaker Class = 1 << iota
	Own
	Other
	He
	She
	Be
	Verb
	Lead
	Filler
	Negator
	Hedge
	Unreal
	Reporting
	Asking
	Auxiliary
	Asked
	Joint
	Binder
	Stop
	Preposition
	Empty
	Article
	Tail
	NotName
	Abbreviation
	And
	Theirs
	Hearer
	Modal
	Often
	Shared
	It
	Document
	Relative
	KinName
	Figure
	Locative
	Given
	Simile
	Participle
	Particle
	Crowd
)

// Is reports whether a token is in one of the classes of c.
func (lx *Grammar) Is(t Token, c Class) bool {
	if t.classed {
		return t.class&c != 0
	}
	return lx.Words[t.Low]&c != 0
}
