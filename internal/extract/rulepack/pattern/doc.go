// Package pattern compiles the patterns of rule packs and matches them on clauses.
//
// A pattern is written over the words of a clause, from its beginning:
//
//	word          that word
//	(a|b c)       either; (a|b)? optionally
//	@set          a phrase of a set
//	{o}           captures words up to where the rest matches: a noun phrase
//	{o:type}      np, rest (also prepositional), place (also prepositional, of
//	              place), verb (a phrase of verb), name, anyname (also lower
//	              case), all (to the end of the clause), num, digits, word, ing
//	              (a verb phrase that begins with such a word), when (a date),
//	              money (an amount), mail (an e-mail address), @set, or *set (a noun phrase that ends in a
//	              phrase of the set; "*ist" is a suffix)
//	...           at the end: anything may follow its last word (else what ends in
//	              a word must reach a stop, as every capture must)
//	<greeted>     something like "hi" stood before the clause
//
// Fillers, hedges and negations may stand between the words of a pattern; they
// are remembered as flags.
//
// The text is untrusted, so the steps of a match, of a clause and of a text are bounded.
package pattern
