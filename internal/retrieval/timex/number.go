package timex

import (
	"strings"

	"palimpsest/internal/lex"
)

// count reads how many: a number, a numeral, or a vague word, whose least and most
// differ.
func (r *reader) count(i int) (n, least, most int) {
	switch w := r.word(i); w {
	case "a", "an", "one", "один", "одну", "одна", "одного", "одной":
		if c := r.phrase(i, "a couple of", "a couple"); c > 0 {
			return c, 2, 2
		}
		if c := r.phrase(i, "a few"); c > 0 {
			return c, 2, 5
		}
		return 1, 1, 1
	case "couple":
		if r.word(i+1) == "of" {
			return 2, 2, 2
		}
		return 1, 2, 2
	case "пару", "пара", "пары":
		return 1, 2, 2
	case "few":
		return 1, 2, 5
	case "several", "несколько", "нескольких":
		return 1, 2, 7
	}
	if v, ok := genitive[r.word(i)]; ok {
		return 1, v, v
	}
	v, ok := lex.Number(r.word(i))
	if !ok || v == 0 {
		return 0, 0, 0
	}
	if v >= 20 && v < 100 && v%10 == 0 && r.word(i)[0] > '9' {
		if n := unitNumber(r.word(i + 1)); n > 0 { // "twenty one"
			return 2, v + n, v + n
		}
	}
	return 1, v, v
}

func unitNumber(word string) int {
	switch word {
	case "one", "один", "одна", "одну":
		return 1
	}
	if v, ok := lex.Number(word); ok && v < 10 && word[0] > '9' {
		return v
	}
	return 0
}

var genitive = map[string]int{
	"двух": 2, "трех": 3, "четырех": 4, "пяти": 5, "шести": 6, "семи": 7, "восьми": 8, "девяти": 9, "десяти": 10,
}

// ordinal reads "3rd", "third", "twenty-first", "3-й", "третьего", up to 99.
func (r *reader) ordinal(i int) (n, value int) {
	w := r.word(i)
	if v, ok := digits(w); ok {
		if r.gap(i) == "-" && russianSuffixes[r.word(i+1)] {
			return 2, v
		}
		return 0, 0
	}
	if v, ok := suffixed(w); ok {
		return 1, v
	}
	if v := ordinalWord(w); v > 0 {
		return 1, v
	}
	if tens, ok := lex.Number(w); ok && tens >= 20 && tens < 100 && tens%10 == 0 {
		if v := ordinalWord(r.word(i + 1)); v > 0 && v < 10 {
			return 2, tens + v
		}
	}
	return 0, 0
}

// digits reads up to three digits.
func digits(w string) (int, bool) {
	if w == "" || len(w) > 3 || w[0] > '9' {
		return 0, false
	}
	return lex.Number(w)
}

// suffixed reads "3rd", "3й".
func suffixed(w string) (int, bool) {
	number := strings.TrimLeft(w, "0123456789")
	v, ok := digits(strings.TrimSuffix(w, number))
	switch number {
	case "st", "nd", "rd", "th":
		return v, ok && v > 0
	}
	return v, ok && v > 0 && russianSuffixes[number]
}

var russianSuffixes = words("й я е го му м х ой ую ого ей ю")

func ordinalWord(w string) int {
	if v, ok := ordinals[w]; ok {
		return v
	}
	for _, ending := range [...]string{"ьего", "ьему", "ого", "ему", "ому", "его", "ьей", "ьем", "ых", "ой", "ый", "ий", "ая", "ья", "ое", "ье", "ые", "ую", "ью", "ом", "ым"} {
		if stem, ok := strings.CutSuffix(w, ending); ok {
			return russianOrdinals[stem]
		}
	}
	return 0
}

var ordinals = map[string]int{
	"first": 1, "second": 2, "third": 3, "fourth": 4, "fifth": 5, "sixth": 6, "seventh": 7, "eighth": 8, "ninth": 9,
	"tenth": 10, "eleventh": 11, "twelfth": 12, "thirteenth": 13, "fourteenth": 14, "fifteenth": 15, "sixteenth": 16,
	"seventeenth": 17, "eighteenth": 18, "nineteenth": 19, "twentieth": 20, "thirtieth": 30, "fortieth": 40,
	"fiftieth": 50, "sixtieth": 60, "seventieth": 70, "eightieth": 80, "ninetieth": 90,
}

var russianOrdinals = map[string]int{
	"перв": 1, "втор": 2, "трет": 3, "четверт": 4, "пят": 5, "шест": 6, "седьм": 7, "восьм": 8, "девят": 9,
	"десят": 10, "одиннадцат": 11, "двенадцат": 12, "тринадцат": 13, "четырнадцат": 14, "пятнадцат": 15,
	"шестнадцат": 16, "семнадцат": 17, "восемнадцат": 18, "девятнадцат": 19, "двадцат": 20, "тридцат": 30,
	"сороков": 40, "пятидесят": 50, "шестидесят": 60, "семидесят": 70, "восьмидесят": 80, "девяност": 90,
}
