package assembly

import (
	"cmp"
	"slices"
	"sync"

	"github.com/tiktoken-go/tokenizer/codec"
)

// o200k is loaded once it is needed: that takes a moment.
var o200k = sync.OnceValue(codec.NewO200kBase)

// Tokens counts tokens of o200k_base.
func Tokens(text string) int {
	n, err := o200k().Count(text)
	if err != nil { // no token is less than a byte
		return len(text)
	}
	return n
}

// inOrder sorts lines by Order, then ID.
func inOrder(lines []Line) []Line {
	lines = slices.Clone(lines)
	slices.SortFunc(lines, func(a, b Line) int { return cmp.Or(cmp.Compare(a.Order, b.Order), cmp.Compare(a.ID, b.ID)) })
	return lines
}
