package rulepack

// class is a set of the closed classes a word may be in.
type class uint64

const (
	isSpeaker class = 1 << iota
	isOwn
	isOther
	isHe
	isShe
	isBe
	isVerb
	isLead
	isFiller
	isNegator
	isHedge
	isUnreal
	isReporting
	isAsking
	isAuxiliary
	isAsked
	isJoint
	isBinder
	isStop
	isPreposition
	isEmpty
	isArticle
	isTail
	isNotName
	isAbbreviation
	isAnd
	isTheirs
	isHearer
	isModal
	isOften
	isShared
	isIt
	isDocument
	isRelative
	isKinName
	isFigure
	isLocative
	isGiven
	isSimile
	isParticiple
	isParticle
)

func (lx *lexicon) is(t token, c class) bool {
	if t.classed {
		return t.class&c != 0
	}
	return lx.words[t.low]&c != 0
}
