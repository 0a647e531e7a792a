package redisdouble

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"
)

// engine is the Query Engine: indexes over the hashes of the server.
type engine struct {
	indexes map[string]*index
	aliases map[string]*index
	// stored reads every hash whose key has one of the prefixes, in the order of
	// the keys.
	stored func(prefixes []string, yield func(key string, hash map[string]string))
	// remove deletes keys.
	remove func(keys []string)
	now    func() time.Time
}

func newEngine(stored func([]string, func(string, map[string]string)), remove func([]string)) *engine {
	return &engine{indexes: map[string]*index{}, aliases: map[string]*index{}, stored: stored, remove: remove, now: time.Now}
}

// concerns tells whether a key is in any index.
func (e *engine) concerns(key string) bool {
	for _, ix := range e.indexes {
		if ix.concerns(key) {
			return true
		}
	}
	return false
}

// update follows a key that was written; a nil hash is one that is gone.
func (e *engine) update(key string, hash map[string]string) {
	for _, ix := range e.indexes {
		if ix.concerns(key) {
			ix.update(key, hash)
		}
	}
}

// find knows an index by its name or an alias.
func (e *engine) find(name string) *index {
	if ix := e.indexes[name]; ix != nil {
		return ix
	}
	return e.aliases[name]
}

// The texts in which the server misses an index: one in searches, the other
// elsewhere.
func errNoIndex(name string) error  { return refusal("No such index %s", name) }
func errNoSuchIndex(n string) error { return fmt.Errorf("%s: no such index", n) }
func errArguments(name string) error {
	return fmt.Errorf("ERR wrong number of arguments for '%s' command", name)
}

// create is FT.CREATE.
func (e *engine) create(args []string) (any, error) {
	w := &words{list: args}
	name := w.next()
	if !w.take("ON", "HASH", "PREFIX") {
		return nil, errUnknown("FT.CREATE", args)
	}
	prefixes, err := w.count()
	if err != nil {
		return nil, err
	}
	var options []string
	skip := false
	for !w.take("SCHEMA") {
		switch {
		case w.take("SKIPINITIALSCAN"):
			skip = true
		case w.take("NOOFFSETS"):
			options = append(options, "NOOFFSETS")
		case w.take("NOHL"):
			options = append(options, "NOHL")
		case w.take("STOPWORDS", "0"):
		default:
			return nil, errUnknown("FT.CREATE", w.rest())
		}
	}
	if e.find(name) != nil {
		return nil, refusal("Index already exists")
	}
	s, err := new(schema).extended(w)
	if err != nil {
		return nil, err
	}
	ix := newIndex(name, prefixes, options, s)
	e.indexes[name] = ix
	if !skip {
		e.stored(prefixes, ix.update)
	}
	return status("OK"), nil
}

// alter is FT.ALTER: the index with its new fields is filled from the rows.
func (e *engine) alter(args []string) (any, error) {
	w := &words{list: args}
	name := w.next()
	old := e.find(name)
	if old == nil {
		return nil, errNoSuchIndex(name)
	}
	w.take("SKIPINITIALSCAN") // callers add fields that no row has
	if !w.take("SCHEMA", "ADD") {
		return nil, errUnknown("FT.ALTER", args)
	}
	s, err := old.extended(w)
	if err != nil {
		return nil, err
	}
	ix := newIndex(old.name, old.prefixes, old.options, s)
	ix.failures, ix.lastError, ix.lastKey = old.failures, old.lastError, old.lastKey
	for _, d := range slices.SortedFunc(maps.Values(old.all), byID) {
		ix.update(d.key, d.hash)
	}
	*old = *ix // aliases point at it
	return status("OK"), nil
}

// drop is FT.DROPINDEX, which takes aliases along.
func (e *engine) drop(args []string) (any, error) {
	w := &words{list: args}
	name := w.next()
	ix := e.find(name)
	if ix == nil {
		return nil, errNoSuchIndex(name)
	}
	rows := w.take("DD")
	if w.more() {
		return nil, errUnknown("FT.DROPINDEX", args)
	}
	delete(e.indexes, ix.name)
	maps.DeleteFunc(e.aliases, func(_ string, of *index) bool { return of == ix })
	if rows {
		e.remove(slices.Collect(maps.Keys(ix.all)))
	}
	return status("OK"), nil
}

// list is FT._LIST.
func (e *engine) list([]string) (any, error) {
	return slices.Sorted(maps.Keys(e.indexes)), nil
}

func (e *engine) aliasAdd(args []string) (any, error) {
	if len(args) == 2 && e.find(args[0]) != nil {
		return nil, refusal("Alias already exists")
	}
	return e.aliasUpdate(args)
}

func (e *engine) aliasUpdate(args []string) (any, error) {
	if len(args) != 2 {
		return nil, errArguments("FT.ALIASUPDATE")
	}
	ix := e.find(args[1])
	if ix == nil {
		return nil, errNoSuchIndex(args[1])
	}
	e.aliases[args[0]] = ix
	return status("OK"), nil
}

func (e *engine) aliasDelete(args []string) (any, error) {
	if len(args) != 1 {
		return nil, errArguments("FT.ALIASDEL")
	}
	if e.aliases[args[0]] == nil {
		return nil, refusal("Alias does not exist")
	}
	delete(e.aliases, args[0])
	return status("OK"), nil
}

// info returns the fields of FT.INFO that clients here read.
func (e *engine) info(args []string) (any, error) {
	if len(args) != 1 {
		return nil, errArguments("FT.INFO")
	}
	ix := e.find(args[0])
	if ix == nil {
		return nil, errNoSuchIndex(args[0])
	}
	attributes := make([]any, len(ix.fields))
	for i, f := range ix.fields {
		attributes[i] = pairs{"identifier", f.name, "attribute", f.name, "type", string(f.kind)}
	}
	return pairs{
		"index_name", ix.name, "index_options", ix.options, "attributes", attributes, "num_docs", len(ix.all),
		"hash_indexing_failures", ix.failures, "indexing", 0, "percent_indexed", 1.0,
		"Index Errors", pairs{
			"indexing failures", ix.failures, "last indexing error", ix.lastError, "last indexing error key", ix.lastKey,
		},
	}, nil
}

func byID(a, b *document) int { return cmp.Compare(a.id, b.id) }
