package eval

import (
	"strings"

	"palimpsest/internal/lex"
)

// Score counts the facts of the labels, the facts that were found, and those of
// them that are right.
type Score struct {
	Stated int `json:"stated"`
	Found  int `json:"found"`
	Right  int `json:"right"`
}

// Precision is the share of the found facts that is right, in per cent; 100 if
// none was found.
func (s Score) Precision() float64 { return percent(s.Right, s.Found) }

// Recall is the share of the labelled facts that was found, in per cent; 100 if
// there is none.
func (s Score) Recall() float64 { return percent(s.Right, s.Stated) }

// F1 is the harmonic mean of both.
func (s Score) F1() float64 { return percent(2*s.Right, s.Found+s.Stated) }

func (s *Score) sum(o Score) {
	s.Stated += o.Stated
	s.Found += o.Found
	s.Right += o.Right
}

func (s *Score) count(stated, found bool) {
	if stated {
		s.Stated++
	}
	if found {
		s.Found++
	}
	if stated && found {
		s.Right++
	}
}

func percent(n, of int) float64 {
	if of == 0 {
		return 100
	}
	return 100 * float64(n) / float64(of)
}

// categories files predicates under the categories of labels.
var categories = map[string]string{
	"name": "name", "preferred_name": "nick", "surname": "name", "age": "age", "birthday": "birthday", "birth_year": "birthday",
	"pronouns": "identity", "gender": "identity", "nationality": "identity", "religion": "identity", "marital_status": "identity",
	"lives_in": "home", "lives_with": "home", "from": "origin", "born_in": "origin", "lived_in": "origin",
	"phone": "contact", "email": "contact", "address": "contact", "contact_channel": "contact", "handle": "contact", "website": "contact",
	"work": "job", "worked": "job", "employment_status": "job", "work_schedule": "job", "has_boss": "job", "works_with": "job",
	"studies": "education", "degree": "education", "attends": "education", "student": "education", "graduated_from": "education",
	"has_pet": "pet", "likes": "like", "dislikes": "dislike", "prefers": "prefer", "response_style": "prefer",
	"hobby": "hobby", "habit": "habit", "quit": "habit", "diet": "diet",
	"allergic_to": "health", "condition": "health", "medication": "health", "blood_type": "health", "treatment": "health",
	"skill": "skill", "speaks": "skill", "plays": "skill", "learning": "skill", "uses": "tool",
	"works_on": "project", "deadline": "project", "wants_to": "plan", "plans_to": "plan", "upcoming": "event",
	"did": "event", "visited": "event", "owns": "possession", "drives": "possession", "instruction": "instruction", "thinks": "opinion",
	"earns": "finance", "owes": "finance", "pays": "finance", "saves": "finance", "budget": "finance",
	"bank": "finance", "insurer": "finance", "invests_in": "finance", "reading": "hobby", "watching": "hobby", "playing": "hobby",
	"subscribes_to": "possession", "goes_to": "habit", "recurring": "habit", "weighs": "trait", "takes_class": "education",
	"is": "trait", "has_trait": "trait", "fears": "trait", "raised_by": "family", "family_role": "family",
}

// categoryOf is the category of a predicate; one that is not listed is its own.
func categoryOf(predicate string) string {
	switch category := categories[predicate]; {
	case category != "":
		return category
	case strings.HasPrefix(predicate, "favorite_"):
		return "like"
	case strings.HasPrefix(predicate, "has_"):
		return "family"
	}
	return predicate
}

// known reports whether a label's category is one of ours.
func known(category string) bool {
	if category == "family" {
		return true
	}
	for _, c := range categories {
		if c == category {
			return true
		}
	}
	return false
}

// overlap is the F1 of the words that two objects share.
func overlap(a, b string) float64 {
	x, y := contents(a), contents(b)
	shared, total := 0, 0
	for w, n := range x {
		shared += min(n, y[w])
		total += n
	}
	for _, n := range y {
		total += n
	}
	if total == 0 {
		return 0
	}
	return 2 * float64(shared) / float64(total)
}

// contents counts the words of an object without endings, articles and the
// prepositions that begin a part of it.
func contents(s string) map[string]int {
	out := make(map[string]int)
	for _, w := range lex.Words(s) {
		if strings.Contains(empty, " "+w+" ") {
			continue
		}
		for _, suffix := range []string{"ing", "ies", "ed", "es", "s", "y"} {
			if stem, ok := strings.CutSuffix(w, suffix); ok && len(stem) >= 3 {
				w = stem
				break
			}
		}
		out[w]++
	}
	return out
}

const empty = " a an the at as in of on to their в на компании за от с el la los las un una de le les des du der die das ein eine il lo gli i uno o os um uma "
