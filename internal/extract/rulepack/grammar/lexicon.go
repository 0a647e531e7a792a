package grammar

import (
	"maps"
	"slices"
	"strings"

	"palimpsest/pkg/events"
)

// Lexicon holds the closed word classes of a language. Lists hold words or
// phrases, folded.
type Lexicon struct {
	// Contractions are written out before anything else: "i'm": "i am".
	Contractions map[string]string `yaml:"contractions"`
	// Prefixes are words that are written together with the next one: "j'": je.
	Prefixes map[string]string `yaml:"prefixes"`
	// Markers are frequent words by which a text is known to be in the language,
	// where several packs read its script. A pack without them reads every text of
	// the script.
	Markers []string `yaml:"markers"`
	// Inverts says that a subject may follow its verb in a statement: "im Mai bin ich
	// nach Köln gezogen".
	Inverts bool `yaml:"inverts"`
	// CapitalNouns says that every noun is written like a name.
	CapitalNouns bool `yaml:"capital_nouns"`
	// Bare maps a word that may be a contraction without its apostrophe to what it stands for
	// before a participle: "were moving".
	Bare map[string][]string `yaml:"bare"`
	// Rewrite maps a word to the one that patterns know: "we": "i".
	Rewrite map[string]string `yaml:"rewrite"`
	// Rephrase does so for phrases of several words: "have got": "have".
	Rephrase map[string]string `yaml:"rephrase"`
	// Shared verbs govern more than one thing: "i am 6 and allergic".
	Shared []string `yaml:"shared"`
	// Hearer maps words to the agent to the speaker's own: "you": "i".
	Hearer map[string]string `yaml:"hearer"`
	// Support are auxiliaries that only make a question: "do".
	Support []string `yaml:"support"`
	// Mine are possessives without their noun: "mine".
	Mine []string `yaml:"mine"`
	// It are pronouns that stand for the last thing spoken of.
	It []string `yaml:"it"`
	// Prized are words behind "my" for something liked: "it is my favorite".
	Prized []string `yaml:"prized"`
	// Indefinite words open what is not the speaker's own one: "a bank went bust".
	Indefinite []string `yaml:"indefinite"`
	// Only opens a value that contrasts with a list: "no coffee, only tea".
	Only []string `yaml:"only"`
	// Possess is the speaker's verb of having: "have". Bearing joins what one has to what one
	// is: "with".
	Possess string `yaml:"possess"`
	Bearing string `yaml:"bearing"`
	// Theirs are the possessives of the third person: "his".
	Theirs []string `yaml:"theirs"`
	// Tasks open a request whose material follows a colon: "translate: …".
	Tasks []string `yaml:"tasks"`
	// Scenes open a role play, a supposition or a joke: nothing behind them in the text
	// is the speaker's own. Documents name a text of another author before a colon.
	Scenes    []string `yaml:"scenes"`
	Documents []string `yaml:"documents"`
	Verdict   Verdict  `yaml:"verdict"`
	// Particles stand in lower case between the parts of a name: "van".
	Particles []string `yaml:"particles"`
	// Cleft holds the words of sentences that put what they state first or last.
	Cleft Cleft `yaml:"cleft"`
	// Roles open what the speaker says that they are, in front of a clause: "as a". What
	// Wishes open behind one is a requirement, which says nothing of the speaker.
	Roles  []string `yaml:"roles"`
	Wishes []string `yaml:"wishes"`
	// Tells open a statement in the form of a question: "did i tell you that".
	Tells []string `yaml:"tells"`
	// Participles open a clause of their own behind what the speaker is: "a Finn living in
	// Bonn".
	Participles []string `yaml:"participles"`
	// Relative pronouns continue about the person before them ("Mateo, who …").
	Relative []string `yaml:"relative"`
	// KinNames are relations that stand without a possessive: "Dad".
	KinNames []string `yaml:"kin_names"`
	// Figures mark a figure of speech: "basically a vampire".
	Figures []string `yaml:"figures"`
	// Corrects open a correction ("i meant"); NotThis stand before the value that
	// the correction replaces ("not").
	Corrects []string `yaml:"corrects"`
	NotThis  []string `yaml:"not_this"`
	// Nowadays stand before or after a value that replaced an earlier one ("it is",
	// "these days"). Present maps verbs of an earlier state to those of the present one
	// ("was": "am").
	Nowadays []string          `yaml:"nowadays"`
	Present  map[string]string `yaml:"present"`
	// Retracts open a sentence that corrects the one before ("wait, no").
	Retracts []string `yaml:"retracts"`
	// Technical words make a sentence talk about a task rather than a life.
	Technical []string `yaml:"technical"`
	// Sensitive words mark every fact of a clause that has one. A leading "*" matches
	// any beginning of a word.
	Sensitive []string `yaml:"sensitive"`
	// Speaker are the subject pronouns of the speaker, Own the possessive ones.
	Speaker []string `yaml:"speaker"`
	Own     []string `yaml:"own"`
	// Others are the subject pronouns of other persons.
	Others []string `yaml:"others"`
	// Singular pronouns that refer back to a person, by gender.
	He  []string `yaml:"he"`
	She []string `yaml:"she"`
	// Be are the forms that may follow a subject as copula.
	Be []string `yaml:"be"`
	// Third maps verb forms of the third person to those of the first.
	Third map[string]string `yaml:"third"`
	// Inflections are the endings of other verbs of the third person, and what the first
	// has in their place.
	Inflections []Inflection `yaml:"inflections"`
	// Verbs may stand without a subject after a conjunction.
	Verbs []string `yaml:"verbs"`
	// Elided are beginnings of sentences without a subject ("moved to Bergen", "been
	// vegan for years").
	Elided []Elision `yaml:"elided"`
	// Leads may stand before a clause and mean nothing ("well", "by the way").
	Leads []string `yaml:"leads"`
	// Fillers may stand anywhere between the words of a pattern.
	Fillers []string `yaml:"fillers"`
	// Negators, Hedges and Past ("used to") may too, and are remembered.
	Negators []string `yaml:"negators"`
	Hedges   []string `yaml:"hedges"`
	Past     []string `yaml:"past"`
	// Ended turns a negation into an ending ("any more").
	Ended []string `yaml:"ended"`
	// Compared are continuations of one that end nothing ("any more than").
	Compared []string `yaml:"compared"`
	// HedgeLeads are whole clauses that make the next one a guess ("i think");
	// UnrealLeads those that make it unreal ("i wish").
	HedgeLeads  []string `yaml:"hedge_leads"`
	UnrealLeads []string `yaml:"unreal_leads"`
	// Modals make a condition behind them count: "i would go if you came".
	Modals []string `yaml:"modals"`
	// Often opens an adverbial before a subject: "most evenings".
	Often []string `yaml:"often"`
	// Unreal words make their sentence hypothetical.
	Unreal []string `yaml:"unreal"`
	// Reporting verbs of another subject attribute the next clause to that subject.
	Reporting []string `yaml:"reporting"`
	// Asking words open a question; Asked must follow those in Auxiliaries.
	Asking      []string `yaml:"asking"`
	Auxiliaries []string `yaml:"auxiliaries"`
	Asked       []string `yaml:"asked"`
	// Joints may stand before a clause: conjunctions.
	Joints []string `yaml:"joints"`
	// Binders before the speaker's pronoun keep it in its clause ("that i").
	Binders []string `yaml:"binders"`
	// Stops end a capture; Prepositions end a noun phrase.
	Stops        []string `yaml:"stops"`
	Prepositions []string `yaml:"prepositions"`
	// Locative prepositions join the parts of a place: "in a village near Bath".
	Locative []string `yaml:"locative"`
	// Similes compare where a mark stands before them: "Wren, like the bird".
	Similes []string `yaml:"similes"`
	// Orders are verbs that ask the agent for something where they open a sentence,
	// although the speaker may do the same: "play Hotel California". Pleas mark one.
	Orders []string `yaml:"orders"`
	Pleas  []string `yaml:"pleas"`
	// Sources end a sentence that the speaker only passes on: "…, i read". Jokes open
	// one that takes back the sentence before.
	Sources []string `yaml:"sources"`
	Jokes   []string `yaml:"jokes"`
	// Able stand between the speaker and verbs joined by "and": "can".
	Able []string `yaml:"able"`
	// Given are frequent first names, which are names in lower case as well: "my
	// brother tom".
	Given []string `yaml:"given"`
	// Empty words make no object on their own ("it", "something").
	Empty []string `yaml:"empty"`
	// Articles are cut off the front of an object, Tails off its end.
	Articles []string `yaml:"articles"`
	Tails    []string `yaml:"tails"`
	// Echo maps words of the speaker's inside objects to a third person's.
	Echo map[string]string `yaml:"echo"`
	// NotNames are words that are no name however they are written.
	NotNames []string `yaml:"not_names"`
	// Abbreviations do not end a sentence with their full stop.
	Abbreviations []string `yaml:"abbreviations"`
	// Subject and Possessive render the speaker in {S} and {S's}; OtherOwn renders
	// the possessive of another person ("{}'s").
	Subject    string `yaml:"subject"`
	Possessive string `yaml:"possessive"`
	OtherOwn   string `yaml:"other_own"`
	// NoLonger stands before the text of an ended fact.
	NoLonger string `yaml:"no_longer"`
	// Changed is the text of a change whose attribute is not named: "{S} changed from
	// {old} to {new}.". Planned words make a change a plan.
	Changed string   `yaml:"changed"`
	Origin  string   `yaml:"origin"` // stands before what a change leaves: "from"
	Planned []string `yaml:"planned"`
	// Crowd are indefinite subjects: "but everybody calls me Bo".
	Crowd []string `yaml:"crowd"`
	// Asides open what stands between two commas in front of a copula and says nothing:
	// "my number, if you need it, is 555 0190".
	Asides []string `yaml:"asides"`
	// Fleeting are times that end with the day: "for the day".
	Fleeting []string `yaml:"fleeting"`
	// Replies are leads that answer and are no greeting: "no".
	Replies []string `yaml:"replies"`
	// Benefit is the preposition of whom something is for.
	Benefit string `yaml:"benefit"`
	// Brief are those that bound a state to some days: "this week", "until".
	Brief []string `yaml:"brief"`
	// Naming words stand between a relation and a name; Yes affirms a question,
	// No denies it.
	Naming []string `yaml:"naming"`
	Yes    []string `yaml:"yes"`
	No     []string `yaml:"no"`
	// And joins the items of a list; Pairs are one item all the same: "drum and bass".
	And   []string `yaml:"and"`
	Pairs []string `yaml:"pairs"`
	// NameEndings give the type of a name by its last word; NameFollowers give it by
	// the word behind the name.
	NameEndings   map[events.EntityType][]string `yaml:"name_endings"`
	NameFollowers map[string]events.EntityType   `yaml:"name_followers"`
	// Calendar holds the words of dates, Money those of amounts.
	Calendar Calendar `yaml:"calendar"`
	Money    Money    `yaml:"money"`
}

// Grammar is a compiled [Lexicon]. Its fields are those of the lexicon, with phrases and
// words as sets, and are not to be written to. It is safe for concurrent use.
type Grammar struct {
	Words        map[string]Class
	contractions map[string][]string
	bare         map[string][]string
	prefixes     map[string]string
	capitalNouns bool
	inverts      bool
	rewrite      map[string]string
	Third        map[string]string
	ThirdOf      map[string]string // the first person's forms to those of the third
	Echo         map[string]string
	rephrase     map[string]string
	Present      map[string]string
	Hearer       map[string]string
	support      []string
	Mine         []string
	rephrased    Phrases
	Tasks        Phrases
	Corrects     Phrases
	Nowadays     Phrases
	notThis      Phrases
	Only         map[string]bool
	Indefinite   map[string]bool
	Prized       map[string]bool
	scenes       Phrases
	Retracts     Phrases
	sensitive    Phrases
	Technical    Phrases
	Leads        Phrases
	HedgeLeads   Phrases
	unrealLeads  Phrases
	Hedges       Phrases
	Past         Phrases
	Ended        Phrases
	compared     Phrases
	Tails        Phrases
	elided       []elision
	Fillers      Phrases
	Negators     Phrases
	Pairs        Phrases
	Inflections  []Inflection

	Roles, wishes, tells, clefts, nameHeads, places, binds, Refuses, Welcomes Phrases
	within, Speaker, Like, Dislike, Bearing                                   string
	orders, sources, Jokes, able                                              Phrases
	pleas, Markers, Naming, Yes, No                                           map[string]bool

	Planned, fleeting   Phrases
	brief, Replies      Phrases
	asides              Phrases
	Benefit             string
	changedText, origin string

	Subject, Possessive, OtherOwn, NoLonger, Possess, Shared string
	Calendar                                                 Calendar
	money                                                    money
	shifts                                                   Phrases
	endings                                                  map[string]events.EntityType
	followers                                                map[string]events.EntityType
}

// Compile makes the grammar of a lexicon.
func (l Lexicon) Compile() *Grammar {
	lx := &Grammar{
		Words:        make(map[string]Class),
		contractions: make(map[string][]string, len(l.Contractions)),
		prefixes:     l.Prefixes, capitalNouns: l.CapitalNouns, inverts: l.Inverts,
		bare: l.Bare, rewrite: l.Rewrite, Third: l.Third, Echo: l.Echo, rephrase: l.Rephrase, Present: l.Present, Hearer: l.Hearer,
		support: l.Support, Mine: l.Mine,
		Subject: l.Subject, Possessive: l.Possessive, OtherOwn: l.OtherOwn, Calendar: l.Calendar, endings: make(map[string]events.EntityType), followers: l.NameFollowers, NoLonger: l.NoLonger, Possess: l.Possess, Shared: first(l.Shared),
		shifts: NewPhrases(slices.Collect(maps.Keys(l.Calendar.Shifts))),
	}
	lx.ThirdOf = make(map[string]string, len(l.Third))
	for third, first := range l.Third {
		if old := lx.ThirdOf[first]; third != first && third > old {
			lx.ThirdOf[first] = third
		}
	}
	for typ, words := range l.NameEndings {
		for _, w := range words {
			lx.endings[w] = typ
		}
	}
	for from, to := range l.Contractions {
		lx.contractions[from] = strings.Fields(to)
	}
	for _, c := range [...]struct {
		bit   Class
		words []string
	}{
		{Speaker, l.Speaker}, {Own, l.Own}, {Other, l.Others}, {He, l.He}, {She, l.She}, {Be, l.Be},
		{Verb, l.Verbs}, {Lead, l.Leads}, {Filler, l.Fillers},
		{Negator, l.Negators}, {Hedge, l.Hedges}, {Unreal, l.Unreal}, {Reporting, l.Reporting},
		{Asking, l.Asking}, {Auxiliary, l.Auxiliaries}, {Asked, l.Asked}, {Joint, l.Joints},
		{Binder, l.Binders}, {Stop, l.Stops}, {Preposition, l.Prepositions}, {Empty, l.Empty},
		{Article, l.Articles}, {Tail, l.Tails}, {NotName, l.NotNames},
		{Abbreviation, l.Abbreviations}, {And, l.And}, {Theirs, l.Theirs},
		{Shared, l.Shared}, {Modal, l.Modals}, {Often, l.Often}, {It, l.It}, {Hearer, slices.Collect(maps.Keys(l.Hearer))},
		{Document, l.Documents}, {Relative, l.Relative}, {KinName, l.KinNames}, {Figure, l.Figures},
		{Locative, l.Locative}, {Given, l.Given}, {Simile, l.Similes}, {Participle, l.Participles}, {Particle, l.Particles}, {Crowd, l.Crowd},
	} {
		for _, w := range c.words {
			lx.Words[w] |= c.bit
		}
	}
	lx.Leads, lx.HedgeLeads, lx.unrealLeads = NewPhrases(l.Leads), NewPhrases(l.HedgeLeads), NewPhrases(l.UnrealLeads)
	lx.Hedges, lx.Past, lx.Ended, lx.Tails = NewPhrases(l.Hedges), NewPhrases(l.Past), NewPhrases(l.Ended), NewPhrases(l.Tails)
	lx.compared, lx.Retracts, lx.scenes = NewPhrases(l.Compared), NewPhrases(l.Retracts), NewPhrases(l.Scenes)
	for _, e := range l.Elided {
		lx.elided = append(lx.elided, elision{strings.Fields(e.Lead), NewPhrases(e.Words)})
	}
	lx.rephrased, lx.Tasks = NewPhrases(slices.Collect(maps.Keys(l.Rephrase))), NewPhrases(l.Tasks)
	lx.Roles, lx.wishes, lx.tells = NewPhrases(l.Roles), NewPhrases(l.Wishes), NewPhrases(l.Tells)
	lx.clefts, lx.nameHeads, lx.places, lx.binds = NewPhrases(l.Cleft.Heads), NewPhrases(l.Cleft.Named), NewPhrases(l.Cleft.Places), NewPhrases(l.Cleft.Binds)
	lx.Refuses, lx.Welcomes = NewPhrases(l.Verdict.Refuses), NewPhrases(l.Verdict.Welcomes)
	lx.Like, lx.Dislike = l.Verdict.Like, l.Verdict.Dislike
	lx.within, lx.Speaker, lx.Bearing = l.Cleft.Within, first(l.Speaker), l.Bearing
	lx.orders, lx.sources, lx.Jokes, lx.able = NewPhrases(l.Orders), NewPhrases(l.Sources), NewPhrases(l.Jokes), NewPhrases(l.Able)
	lx.pleas, lx.Prized, lx.Markers, lx.Naming, lx.Yes, lx.No = toSet(l.Pleas), toSet(l.Prized), toSet(l.Markers), toSet(l.Naming), toSet(l.Yes), toSet(l.No)
	lx.Technical = NewPhrases(l.Technical)
	lx.Only, lx.Indefinite = toSet(l.Only), toSet(l.Indefinite)
	lx.Planned, lx.fleeting, lx.changedText, lx.origin = NewPhrases(l.Planned), NewPhrases(l.Fleeting), l.Changed, l.Origin
	lx.asides = NewPhrases(l.Asides)
	lx.brief, lx.Replies, lx.Benefit = NewPhrases(l.Brief), NewPhrases(l.Replies), l.Benefit
	lx.Nowadays = NewPhrases(l.Nowadays)
	lx.Corrects, lx.notThis, lx.sensitive = NewPhrases(l.Corrects), NewPhrases(l.NotThis), NewPhrases(l.Sensitive)
	lx.Inflections = l.Inflections
	lx.money, lx.Pairs = l.Money.compile(), NewPhrases(l.Pairs)
	lx.Fillers, lx.Negators = NewPhrases(l.Fillers), NewPhrases(l.Negators)
	return lx
}
