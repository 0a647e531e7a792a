package grammar

import (
	"strings"
)

// Money holds the words of amounts in one language: "$72k a year", "9 cents a word".
type Money struct {
	Signs   []string `yaml:"signs"`   // before or after the number: $
	Units   []string `yaml:"units"`   // behind the number: euros, grand, thousand
	Per     []string `yaml:"per"`     // before a period: a, per, every
	Periods []string `yaml:"periods"` // month; also "word" in "9 cents a word"
	Rates   []string `yaml:"rates"`   // periods without Per: monthly
}

// money is a compiled [Money].
type money struct{ signs, units, per, periods, rates map[string]bool }

func (m Money) compile() money {
	return money{toSet(m.Signs), toSet(m.Units), toSet(m.Per), toSet(m.Periods), toSet(m.Rates)}
}

// Amount is the number of tokens at i that are an amount of money, 0 for none. A bare
// number needs three digits, a sign, a unit or a period: "i make 3 pizzas".
func (lx *Grammar) Amount(ts []Token, i int) int {
	at := func(j int) string {
		if j < len(ts) && !ts[j].Quoted {
			return ts[j].Low
		}
		return ""
	}
	j, marked := i, false
	if lx.money.signs[at(j)] {
		j, marked = j+1, true
	}
	number := at(j)
	if !lx.IsNumber(number) {
		return 0
	}
	j++
	marked = marked || len(number) >= 3 && Digit(number) || strings.HasSuffix(number, "k") && Digit(number)
	for lx.money.units[at(j)] || lx.money.signs[at(j)] {
		j, marked = j+1, true
	}
	switch {
	case lx.money.rates[at(j)]:
		j, marked = j+1, true
	case lx.money.per[at(j)] && lx.money.periods[at(j+1)]:
		j, marked = j+2, true
	}
	if !marked {
		return 0
	}
	return j - i
}
