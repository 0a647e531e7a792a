package retrieval

import (
	"slices"
	"strings"
	"sync"

	"palimpsest/internal/lex"
	"palimpsest/internal/retrieval/attribute"
	"palimpsest/internal/store"
)

// The words by which a question is about the asker, and a text about who says it.
var (
	ownWords = []string{
		"i", "im", "ive", "my", "me", "mine", "myself", "i'm", "i've", "i'd", "i'll", "we", "our", "us", "we're", "we've",
		"я", "мой", "моя", "мое", "мои", "моего", "моей", "моих", "мою", "моем", "моим", "меня", "мне", "мной", "мы", "наш", "наша", "наше", "наши", "нас", "нам", "у",
		"我",
	}
	// relations are the words for relatives, friends and the like.
	relations = sync.OnceValue(func() map[termID]bool {
		all := map[termID]bool{}
		for _, term := range lex.Terms(`mother mum mom father dad parent grandmother grandma granny grandfather grandpa grandparent
			son daughter child children kid baby brother sister sibling husband wife spouse partner fiancé fiancée girlfriend boyfriend
			cousin aunt uncle nephew niece friend neighbour neighbor boss manager colleague coworker landlord landlady roommate flatmate
			мать мама отец папа родители бабушка дедушка дед сын дочь дочка ребенок дети брат сестра муж жена супруг супруга подруга друг
			дядя тетя сосед соседка коллега начальник`) {
			all[idOf(term)] = true
		}
		return all
	})
)

// thirdPerson are the words for the asker in a question that an assistant asks.
var thirdPerson = []string{"he", "him", "his", "she", "her", "hers", "they", "their", "user", "он", "его", "ему", "она", "ее", "ей"}

// asksOfAsker reports whether a question is about the asker, and not about a
// relative or friend. Named tells that it has the asker's name, speakers that the
// memory has several speakers, so that a pronoun may be any of them.
func asksOfAsker(words []string, terms []string, named, speakers bool) bool {
	of := func(list []string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return slices.Contains(list, w) })
	}
	return (named || of(ownWords) || !speakers && of(thirdPerson)) &&
		!slices.ContainsFunc(terms, func(t string) bool { return relations()[idOf(t)] })
}

// asker is the subject of facts about the user.
const asker = "user"

// aboutAsker is 1 for a fact about the asker, less for a fact about a relative or
// friend whom the question does not mention, and -1 for a fact about another person.
func (q *question) aboutAsker(f *store.Fact, terms []termID) float64 {
	if f.Subject != asker {
		return -1
	}
	for _, id := range terms {
		if relations()[id] && q.index(id) < 0 {
			return 0
		}
	}
	return 1
}

// naming are the predicates of the facts that give a name.
var naming = []string{"name", "preferred_name"}

// askerNames are the words of the asker's names: the user whose memory is searched,
// and what the facts that were found call the asker.
func (p *pool) askerNames() map[string]bool {
	names := map[string]bool{}
	add := func(name string) {
		for _, w := range lex.Words(name) {
			names[w] = true
		}
	}
	if p.query.Scope.User != nil {
		add(*p.query.Scope.User)
	}
	for _, c := range p.all {
		if f := c.hit.Fact; f != nil && f.Subject == asker && slices.Contains(naming, f.Predicate) {
			add(f.Object)
		}
	}
	return names
}

// nameRelations adds the names of the relatives and friends whom the question
// mentions, as far as facts tell them, as synonyms.
func (p *pool) nameRelations() {
	for _, c := range p.all {
		f := c.hit.Fact
		if f == nil || f.Subject != asker || !attribute.IsRelation(f.Predicate) || f.Object == "" {
			continue
		}
		for _, id := range termsOf(f.Text) {
			at := p.asked.index(id)
			if at < 0 || !relations()[id] {
				continue
			}
			of, share := p.asked.forms[at], nameShare
			if of.share == 1 && p.asked.attributes[f.Predicate] == nil {
				share = 1 // the question does not ask for the name, which stands for the word
			}
			for _, w := range lex.Words(f.Object) {
				p.asked.subjects[w] = true
			}
			for _, name := range termsOf(f.Object) {
				if p.asked.index(name) < 0 && len(p.asked.forms) < maxForms {
					p.asked.forms = append(p.asked.forms, form{name, of.of, share, share * p.asked.weights[of.of]})
				}
			}
		}
	}
}

// nameShare is what the name of a relative counts beside the word for one.
const nameShare = 0.7

// answers is 1 for a fact whose predicate and subject are what the question asks for,
// and less for one of a predicate that says many things.
func (q *question) answers(f *store.Fact) float64 {
	terms := q.attributes[f.Predicate]
	about := f.Subject == asker && (q.own || attribute.IsRelation(f.Predicate))
	if f.Subject != asker {
		about = slices.ContainsFunc(lex.Words(f.Subject), func(w string) bool { return q.subjects[w] })
	}
	switch {
	case terms == nil || !about:
		return 0
	case len(terms) == 0:
		return 0.5
	}
	return 1
}

// fulfilled is what a term counts, of its weight, where a text has a synonym of it and
// a fact answers.
const fulfilled = 0.4

// fulfil lets a fact that answers, or its turn, hold the terms that ask for the
// predicate.
func (q *question) fulfil(m *match, f *store.Fact) {
	for _, term := range q.attributes[f.Predicate] {
		i := slices.Index(q.terms, term)
		if i < 0 || m.mask&(1<<i) != 0 {
			continue
		}
		share := 1.0
		if m.akin&(1<<i) != 0 {
			share = fulfilled
		}
		m.mask |= 1 << i
		q.held |= 1 << i
		m.bm25 += share * q.weights[i]
		m.rarest = max(m.rarest, q.weights[i])
	}
}

// opening is how many words of a text tell whom it is about.
const opening = 3

// aboutSpeaker reports whether a text mentions who says it.
func aboutSpeaker(text string) bool {
	return slices.ContainsFunc(lex.Words(text[:min(len(text), 256)]), func(w string) bool { return slices.Contains(ownWords, w) })
}

// aboutRelation reports whether a text begins with a relative or friend of the
// speaker.
func aboutRelation(text string) bool {
	own := false
	for i, field := range strings.Fields(text[:min(len(text), 64)]) {
		if i == opening {
			break
		}
		for _, w := range questionWords(field) {
			own = own || slices.Contains(ownWords, w)
			if own && relatedTo(w) {
				return true
			}
		}
	}
	return false
}

func relatedTo(word string) bool {
	terms := lex.Terms(word)
	return len(terms) == 1 && relations()[idOf(terms[0])]
}

// timeWords tell when something is.
var timeWords = sync.OnceValue(func() map[termID]bool {
	all := map[termID]bool{}
	for _, term := range lex.Terms(`yesterday today tomorrow tonight ago last next week weekend month year morning afternoon evening night daily noon midday midnight bedtime
		spring summer autumn winter monday tuesday wednesday thursday friday saturday sunday january february march april june july
		august september october november december
		вчера сегодня завтра назад неделя месяц год утром вечером весной летом осенью зимой понедельник вторник среду четверг пятницу субботу
		воскресенье января февраля марта апреля мая июня июля августа сентября октября ноября декабря`) {
		all[idOf(term)] = true
	}
	return all
})

// asksNumber reports whether a question asks when, or how much of something.
func asksNumber(words []string) bool {
	for i, w := range words {
		switch w {
		case "when", "когда", "сколько":
			return true
		case "how":
			if i+1 < len(words) && slices.Contains([]string{"old", "much", "many", "long", "tall", "often", "far", "big", "large"}, words[i+1]) {
				return true
			}
		}
	}
	return false
}
