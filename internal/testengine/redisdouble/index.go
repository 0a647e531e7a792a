package redisdouble

import (
	"cmp"
	"slices"
	"strings"
)

// documents is a set of them.
type documents map[*document]struct{}

// postings are the documents that hold a word, by word.
type postings map[string]documents

func (p postings) add(word string, d *document) {
	set := p[word]
	if set == nil {
		set = documents{}
		p[word] = set
	}
	set[d] = struct{}{}
}

func (p postings) remove(word string, d *document) {
	set := p[word]
	delete(set, d)
	if len(set) == 0 {
		delete(p, word)
	}
}

// ordering are the documents that have a number, by it.
type ordering []entry

type entry struct {
	number float64
	*document
}

func compareEntries(a, b entry) int {
	return cmp.Or(cmp.Compare(a.number, b.number), cmp.Compare(a.id, b.id))
}

func (o *ordering) add(number float64, d *document) {
	i, _ := slices.BinarySearchFunc(*o, entry{number, d}, compareEntries)
	*o = slices.Insert(*o, i, entry{number, d})
}

func (o *ordering) remove(number float64, d *document) {
	if i, found := slices.BinarySearchFunc(*o, entry{number, d}, compareEntries); found {
		*o = slices.Delete(*o, i, i+1)
	}
}

// index is one that FT.CREATE made.
type index struct {
	name     string
	prefixes []string
	options  []string
	*schema

	all       map[string]*document // by key
	tags      []postings
	terms     []postings
	orderings []*ordering // of each number; nil until a search wants it
	vectors   []documents
	newest    uint64 // id of the document written last
	length    int    // terms of all documents
	searches  uint64

	failures  int
	lastError string
	lastKey   string
}

func newIndex(name string, prefixes, options []string, s *schema) *index {
	ix := &index{
		name: name, prefixes: prefixes, options: options, schema: s, all: map[string]*document{},
		tags: make([]postings, s.counts[tagField]), terms: make([]postings, s.counts[textField]),
		orderings: make([]*ordering, s.counts[numericField]), vectors: make([]documents, s.counts[vectorField]),
		lastError: "N/A", lastKey: "N/A",
	}
	for _, columns := range [][]postings{ix.tags, ix.terms} {
		for i := range columns {
			columns[i] = postings{}
		}
	}
	for i := range ix.vectors {
		ix.vectors[i] = documents{}
	}
	return ix
}

func (ix *index) concerns(key string) bool {
	return slices.ContainsFunc(ix.prefixes, func(p string) bool { return strings.HasPrefix(key, p) })
}

// update indexes a key anew; a nil hash is one that is gone.
func (ix *index) update(key string, hash map[string]string) {
	if old := ix.all[key]; old != nil {
		ix.remove(old)
	}
	if hash == nil {
		return
	}
	ix.newest++
	d, err := newDocument(ix.newest, key, hash, ix.schema)
	if err != nil {
		ix.failures++
		ix.lastError, ix.lastKey = err.Error(), key
		return
	}
	ix.add(d)
}

func (ix *index) add(d *document) {
	ix.all[d.key] = d
	ix.length += d.length
	for i, tags := range d.tags {
		for _, tag := range tags {
			ix.tags[i].add(tag, d)
		}
	}
	for i, counts := range d.terms {
		for term := range counts {
			ix.terms[i].add(term, d)
		}
	}
	for i, o := range ix.orderings {
		if x := d.numbers[i]; o != nil && x == x { // not NaN
			o.add(x, d)
		}
	}
	for i, v := range d.vectors {
		if v != nil {
			ix.vectors[i][d] = struct{}{}
		}
	}
}

func (ix *index) remove(d *document) {
	delete(ix.all, d.key)
	ix.length -= d.length
	for i, tags := range d.tags {
		for _, tag := range tags {
			ix.tags[i].remove(tag, d)
		}
	}
	for i, counts := range d.terms {
		for term := range counts {
			ix.terms[i].remove(term, d)
		}
	}
	for i, o := range ix.orderings {
		if x := d.numbers[i]; o != nil && x == x { // not NaN
			o.remove(x, d)
		}
	}
	for i := range d.vectors {
		delete(ix.vectors[i], d)
	}
}

// ordering makes that of a number when it is asked for first.
func (ix *index) ordering(f *field) *ordering {
	if ix.orderings[f.column] == nil {
		o := new(ordering)
		for _, d := range ix.all {
			if x := d.numbers[f.column]; x == x { // not NaN
				*o = append(*o, entry{x, d})
			}
		}
		slices.SortFunc(*o, compareEntries)
		ix.orderings[f.column] = o
	}
	return ix.orderings[f.column]
}
