package sqlite

import (
	"context"
	"encoding/json"
	"slices"
)

// A posting is a document that holds a term: its id (see docID) and, in the low
// bits, how often it does. Counts from maxCount on stand for that, where BM25
// has long been saturated.
type posting uint64

const (
	countBits = 12
	maxCount  = 1<<countBits - 1
)

func newPosting(doc int64, count int) posting {
	return posting(doc)<<countBits | posting(min(count, maxCount))
}

func (p posting) doc() int64  { return int64(p >> countBits) }
func (p posting) row() int64  { return docRow(p.doc()) }
func (p posting) length() int { return int(p.doc() & maxLength) }
func (p posting) count() int  { return int(p & maxCount) }

// postingList is the documents of one scope that contain a term, by ascending row.
// It is a value: set and cut leave the list of other holders as it was.
type postingList struct {
	postings []posting
	// shortest and most bound what any posting scores: the least length and the
	// highest count that ever were in the list.
	shortest, most int
}

func listOf(postings []posting) postingList {
	l := postingList{postings: postings, shortest: maxLength}
	for _, p := range postings {
		l.bound(p)
	}
	return l
}

func (l *postingList) bound(p posting) {
	l.shortest, l.most = min(l.shortest, p.length()), max(l.most, p.count())
}

func (l postingList) bytes() int64 { return int64(cap(l.postings))*8 + 64 }

// find returns where a row is, or would be.
func (l postingList) find(row int64) (i int, ok bool) {
	if n := len(l.postings); n > 0 && l.postings[n-1].row() < row {
		return n, false // as for every new row
	}
	return slices.BinarySearchFunc(l.postings, row, func(p posting, row int64) int { return int(min(1, max(-1, p.row()-row))) })
}

// set returns the list with p in place of the earlier posting of its row. Only one
// goroutine ever sets: an append may write past the end of a list that others hold.
func (l postingList) set(p posting) postingList {
	switch i, ok := l.find(p.row()); {
	case i == len(l.postings):
		l.postings = append(l.postings, p)
	case ok && l.postings[i] == p:
		return l
	case ok:
		l.postings = slices.Clone(l.postings)
		l.postings[i] = p
	default:
		l.postings = slices.Insert(slices.Clip(l.postings), i, p)
	}
	l.bound(p)
	return l
}

// cut is the list without a row.
func (l postingList) cut(row int64) postingList {
	if i, ok := l.find(row); ok {
		l.postings = slices.Concat(l.postings[:i], l.postings[i+1:])
	}
	return l
}

// parsePostings reads ascending document ids, one for each occurrence.
func parsePostings(docs []byte) []posting {
	if len(docs) == 0 {
		return nil
	}
	var list []posting
	var doc, last int64
	count := 0
	for i := 0; i <= len(docs); i++ {
		if i < len(docs) && docs[i] != ' ' {
			doc = doc*10 + int64(docs[i]-'0')
			continue
		}
		if count > 0 && doc != last {
			list = append(list, newPosting(last, count))
			count = 0
		}
		last, doc = doc, 0
		count++
	}
	return slices.Clip(append(list, newPosting(last, count)))
}

// listKey names a posting list.
type listKey struct {
	index, term string
	scopeID     int64
}

func (k listKey) changes() int64 { return k.scopeID }

// bytes is what the key weighs; its table's name is shared.
func (k listKey) bytes() int64 { return int64(len(k.term)) }

// maxListsRead bounds the lists that one statement reads.
const maxListsRead = 512

// postingLists returns the list of each term in each place: those of place i
// begin at i·len(terms).
func (s *Store) postingLists(ctx context.Context, t table, places []place, terms []string) ([]postingList, error) {
	keys := make([]listKey, 0, len(places)*len(terms))
	for _, p := range places {
		for _, term := range terms {
			keys = append(keys, listKey{t.index, term, p.scopeID})
		}
	}
	lists := make([]postingList, len(keys))
	known := make([]bool, len(keys))
	marks := s.lists.get(keys, func(i int, l postingList) { lists[i], known[i] = l, true })
	var missing []int
	for i := range keys {
		if !known[i] && places[i/len(terms)].corpus(t).docs > 0 {
			missing = append(missing, i)
		}
	}
	for batch := range slices.Chunk(missing, maxListsRead) {
		err := s.readLists(ctx, t, keys, batch, func(i int, l postingList) {
			lists[i] = l
			s.lists.put(keys[i], l, l.bytes()+keys[i].bytes(), &marks)
		})
		if err != nil {
			return nil, err
		}
	}
	return lists, nil
}

// readLists reads the lists of keys[i] for each i of batch. One string a list
// costs a tenth of one row a posting, and one statement for all half of one
// each.
func (s *Store) readLists(ctx context.Context, t table, keys []listKey, batch []int, read func(i int, l postingList)) error {
	wanted := make([]string, len(batch))
	for i, at := range batch {
		wanted[i] = token(keys[at].scopeID, keys[at].term)
	}
	raw, err := json.Marshal(wanted)
	if err != nil {
		return err
	}
	return s.reads.each(ctx, `SELECT j.key, (SELECT group_concat(doc, ' ') FROM `+t.postings+` WHERE term = j.value) FROM json_each(?) j`,
		[]any{string(raw)}, func(row scanner) error {
			var i int
			var docs rawText
			if err := row.Scan(&i, &docs); err != nil {
				return err
			}
			read(batch[i], listOf(parsePostings(docs)))
			return nil
		})
}

// shelve brings the posting lists in memory to what a commit made of a document:
// before are its terms until then, under another length perhaps.
func (s *Store) shelve(t table, scopeID, row int64, before, after []string) {
	if !s.lists.change(scopeID) {
		return
	}
	count := make(map[string]int, len(after))
	for _, term := range after {
		count[term]++
	}
	for _, term := range before {
		count[term] += 0
	}
	keys := make([]listKey, 0, len(count))
	for term := range count {
		keys = append(keys, listKey{t.index, term, scopeID})
	}
	s.lists.edit(keys, func(i int, l postingList) (postingList, int64, bool) {
		if n := count[keys[i].term]; n > 0 {
			l = l.set(newPosting(docID(row, len(after)), n))
		} else {
			l = l.cut(row)
		}
		return l, l.bytes() + keys[i].bytes(), true
	})
}
