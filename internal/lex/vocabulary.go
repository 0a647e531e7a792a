package lex

import (
	"strconv"
	"strings"
	"time"
)

// isNegation knows the words that deny, or tell of an end or an aversion. An
// aversion counts because "dislikes" is to "likes" what "not" is to nothing.
func isNegation(w string) bool {
	switch w {
	case "not", "no", "never", "none", "nothing", "nobody", "neither", "nor", "without", "cannot", "cant",
		"dont", "doesnt", "didnt", "isnt", "wasnt", "wont", "anymore",
		"stop", "stops", "stopped", "quit", "quits", "former", "formerly", "ex", "lacks",
		"dislike", "dislikes", "disliked", "hate", "hates", "hated", "avoid", "avoids", "avoided", "refuses",
		"не", "нет", "ни", "никогда", "без", "ничего", "никто", "бросил", "бросила", "перестал", "перестала",
		"ненавидит", "ненавижу", "бывший", "бывшая":
		return true
	}
	return strings.HasSuffix(w, "n't")
}

// Number reads a folded word as a cardinal number: up to four digits, or a numeral
// in words as far as these are known (0 to 20 and the tens).
func Number(word string) (int, bool) {
	if digits, ok := numerals(word); ok {
		word = digits
	}
	if len(word) > 4 || strings.Trim(word, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.Atoi(word)
	return n, err == nil
}

// numerals reads small numerals in words, English and Russian.
func numerals(w string) (string, bool) {
	switch w {
	case "zero", "ноль":
		return "0", true
	case "two", "twice", "два", "две", "двое", "дважды":
		return "2", true
	case "three", "три", "трое", "трижды":
		return "3", true
	case "four", "четыре", "четверо":
		return "4", true
	case "five", "пять":
		return "5", true
	case "six", "шесть":
		return "6", true
	case "seven", "семь":
		return "7", true
	case "eight", "восемь":
		return "8", true
	case "nine", "девять":
		return "9", true
	case "ten", "десять":
		return "10", true
	case "eleven", "одиннадцать":
		return "11", true
	case "twelve", "двенадцать":
		return "12", true
	}
	return largeNumeral(w)
}

func largeNumeral(w string) (string, bool) {
	switch w {
	case "thirteen", "тринадцать":
		return "13", true
	case "fourteen", "четырнадцать":
		return "14", true
	case "fifteen", "пятнадцать":
		return "15", true
	case "sixteen", "шестнадцать":
		return "16", true
	case "seventeen", "семнадцать":
		return "17", true
	case "eighteen", "восемнадцать":
		return "18", true
	case "nineteen", "девятнадцать":
		return "19", true
	case "twenty", "двадцать":
		return "20", true
	case "thirty", "тридцать":
		return "30", true
	case "forty", "сорок":
		return "40", true
	case "fifty", "пятьдесят":
		return "50", true
	case "sixty", "шестьдесят":
		return "60", true
	case "seventy", "семьдесят":
		return "70", true
	case "eighty", "восемьдесят":
		return "80", true
	case "ninety", "девяносто":
		return "90", true
	case "hundred", "сто":
		return "100", true
	case "thousand", "тысяча", "тысяч", "тысячи":
		return "1000", true
	case "million", "миллион", "миллиона", "миллионов":
		return "1000000", true
	}
	return "", false
}

// dateName reads names of months and weekdays. Those that are words of another
// meaning as well count only when capitalised.
func dateName(w string, capital bool) (string, bool) {
	switch w {
	case "may", "march", "mar", "sun", "sat", "august":
		if !capital {
			return "", false
		}
	}
	if month, ok := Month(w); ok {
		return strings.ToLower(month.String()), true
	}
	if day, ok := Weekday(w); ok {
		return strings.ToLower(day.String()), true
	}
	return "", false
}

// Month reads a folded word as a month: English with abbreviations, Russian in
// every case of the singular.
func Month(word string) (time.Month, bool) {
	switch word {
	case "january", "jan", "январь", "января", "январе", "январю", "январем":
		return time.January, true
	case "february", "feb", "февраль", "февраля", "феврале", "февралю", "февралем":
		return time.February, true
	case "march", "mar", "март", "марта", "марте", "марту", "мартом":
		return time.March, true
	case "april", "apr", "апрель", "апреля", "апреле", "апрелю", "апрелем":
		return time.April, true
	case "may", "май", "мая", "мае", "маю", "маем":
		return time.May, true
	case "june", "jun", "июнь", "июня", "июне", "июню", "июнем":
		return time.June, true
	case "july", "jul", "июль", "июля", "июле", "июлю", "июлем":
		return time.July, true
	case "august", "aug", "август", "августа", "августе", "августу", "августом":
		return time.August, true
	case "september", "sep", "sept", "сентябрь", "сентября", "сентябре", "сентябрю", "сентябрем":
		return time.September, true
	case "october", "oct", "октябрь", "октября", "октябре", "октябрю", "октябрем":
		return time.October, true
	case "november", "nov", "ноябрь", "ноября", "ноябре", "ноябрю", "ноябрем":
		return time.November, true
	case "december", "dec", "декабрь", "декабря", "декабре", "декабрю", "декабрем":
		return time.December, true
	}
	return 0, false
}

// Weekday reads a folded word as a day of the week: English with abbreviations
// and plural, Russian in the cases that follow a preposition.
func Weekday(word string) (time.Weekday, bool) {
	switch word {
	case "monday", "mon", "mondays", "понедельник", "понедельника", "понедельнику", "понедельникам":
		return time.Monday, true
	case "tuesday", "tue", "tues", "tuesdays", "вторник", "вторника", "вторнику", "вторникам":
		return time.Tuesday, true
	case "wednesday", "wed", "wednesdays", "среда", "среду", "среды", "среде", "средам":
		return time.Wednesday, true
	case "thursday", "thu", "thur", "thurs", "thursdays", "четверг", "четверга", "четвергу", "четвергам":
		return time.Thursday, true
	case "friday", "fri", "fridays", "пятница", "пятницу", "пятницы", "пятнице", "пятницам":
		return time.Friday, true
	case "saturday", "sat", "saturdays", "суббота", "субботу", "субботы", "субботе", "субботам":
		return time.Saturday, true
	case "sunday", "sun", "sundays", "воскресенье", "воскресенья", "воскресенью", "воскресеньям":
		return time.Sunday, true
	}
	return 0, false
}
