package lex

import "strings"

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
	if name, ok := monthName(w); ok {
		return name, true
	}
	return weekdayName(w)
}

func monthName(w string) (string, bool) {
	switch w {
	case "january", "jan", "январь", "января", "январе":
		return "january", true
	case "february", "feb", "февраль", "февраля", "феврале":
		return "february", true
	case "march", "mar", "март", "марта", "марте":
		return "march", true
	case "april", "apr", "апрель", "апреля", "апреле":
		return "april", true
	case "may", "май", "мая", "мае":
		return "may", true
	case "june", "jun", "июнь", "июня", "июне":
		return "june", true
	case "july", "jul", "июль", "июля", "июле":
		return "july", true
	case "august", "aug", "август", "августа", "августе":
		return "august", true
	case "september", "sep", "sept", "сентябрь", "сентября", "сентябре":
		return "september", true
	case "october", "oct", "октябрь", "октября", "октябре":
		return "october", true
	case "november", "nov", "ноябрь", "ноября", "ноябре":
		return "november", true
	case "december", "dec", "декабрь", "декабря", "декабре":
		return "december", true
	}
	return "", false
}

func weekdayName(w string) (string, bool) {
	switch w {
	case "monday", "mon", "mondays", "понедельник", "понедельникам":
		return "monday", true
	case "tuesday", "tue", "tues", "tuesdays", "вторник", "вторникам":
		return "tuesday", true
	case "wednesday", "wed", "wednesdays", "среда", "среду", "средам":
		return "wednesday", true
	case "thursday", "thu", "thur", "thurs", "thursdays", "четверг", "четвергам":
		return "thursday", true
	case "friday", "fri", "fridays", "пятница", "пятницу", "пятницам":
		return "friday", true
	case "saturday", "sat", "saturdays", "суббота", "субботу", "субботам":
		return "saturday", true
	case "sunday", "sun", "sundays", "воскресенье", "воскресеньям":
		return "sunday", true
	}
	return "", false
}
