package retrieval

import (
	"slices"
	"strings"
	"sync"

	"palimpsest/internal/lex"
	"palimpsest/internal/store"
)

// The words by which a question is about the asker, and a text about who says it.
var (
	ownWords = []string{
		"i", "my", "me", "mine", "myself", "i'm", "i've", "i'd", "i'll", "we", "our", "us", "we're", "we've",
		"я", "мой", "моя", "мое", "мои", "моего", "моей", "моих", "мою", "моем", "моим", "меня", "мне", "мной", "мы", "наш", "наша", "наше", "наши", "нас", "нам", "у",
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

// asksOfAsker reports whether a question is about the asker, and not about a
// relative or friend.
func asksOfAsker(words []string, terms []string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return slices.Contains(ownWords, w) }) &&
		!slices.ContainsFunc(terms, func(t string) bool { return relations()[idOf(t)] })
}

// asker is the subject of facts about the user.
const asker = "user"

// aboutAsker is 1 for a fact about the asker, less for a fact about a relative or
// friend whom the question does not mention, and -1 for a fact about another person.
func (q *question) aboutAsker(f *store.Fact) float64 {
	if f.Subject != asker {
		return -1
	}
	for _, id := range termsOf(f.Text) {
		if relations()[id] && q.index(id) < 0 {
			return 0
		}
	}
	return 1
}

// opening is how many words of a text tell whom it is about.
const opening = 3

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
	for _, term := range lex.Terms(`yesterday today tomorrow tonight ago last next week weekend month year morning afternoon evening noon midnight
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
