package events

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strconv"
	"strings"
	"sync"
)

// walker passes over text.
type walker struct {
	data  []byte
	i     int
	depth int
	path  []step
	keys  [][]byte // names of the open objects, innermost last
	// mask holds where members stand that encoding/json would take for others,
	// because it ignores case.
	mask   [][2]int
	locate bool
}

// walkers spares each message the stacks of its walk.
var walkers = sync.Pool{New: func() any { return new(walker) }}

func newWalker(data []byte, depth int) *walker {
	w := walkers.Get().(*walker) //nolint:forcetypeassert // holds nothing else
	w.restart(data, depth)
	return w
}

func (w *walker) restart(data []byte, depth int) {
	*w = walker{data: data, depth: depth, path: w.path[:0], keys: w.keys[:0], mask: w.mask[:0]}
}

// free gives the walker back, holding on to nothing of the text.
func (w *walker) free() {
	clear(w.path[:cap(w.path)])
	clear(w.keys[:cap(w.keys)])
	w.restart(nil, 0)
	walkers.Put(w)
}

// next is the byte that the walker stands on, 0 at the end.
func (w *walker) next() byte {
	if w.i < len(w.data) {
		return w.data[w.i]
	}
	return 0
}

// take passes over one byte that must be there.
func (w *walker) take(c byte) error {
	if w.next() != c {
		return errSyntax
	}
	w.i++
	return nil
}

// step is one element of a path: a member's name, or an index where key is nil.
type step struct {
	key   []byte
	index int
}

func (w *walker) value(s *shape) error {
	w.space()
	if w.locate && s.leaf != nil {
		return w.leaf(s)
	}
	c := w.next()
	if c != 'n' {
		if err := w.fits(s, c); err != nil {
			return err
		}
	}
	switch c {
	case '{':
		return w.object(s)
	case '[':
		return w.list(s)
	case '"':
		_, err := w.text()
		return err
	case 't':
		return w.literal("true")
	case 'n':
		return w.literal("null")
	case 'f':
		return w.literal("false")
	}
	return w.number(s)
}

func (w *walker) literal(text string) error {
	if !bytes.HasPrefix(w.data[w.i:], []byte(text)) {
		return errSyntax
	}
	w.i += len(text)
	return nil
}

// fits compares the first byte of a value with its shape. Null fits anything:
// it is an absent member.
func (w *walker) fits(s *shape, c byte) error {
	ok := true
	want := ""
	switch s.form {
	case formText, formBytes:
		ok, want = c == '"', "a string"
	case formBool:
		ok, want = c == 't' || c == 'f', "true or false"
	case formInt, formUint:
		ok, want = c == '-' || '0' <= c && c <= '9', "a whole number"
	case formFloat:
		ok, want = c == '-' || '0' <= c && c <= '9', "a number"
	case formList:
		ok, want = c == '[', "an array"
	case formTable, formObject:
		ok, want = c == '{', "an object"
	}
	if ok {
		return nil
	}
	return w.refuse(CodeInvalidField, "must be "+want)
}

func (w *walker) object(s *shape) error {
	if err := w.enter(); err != nil {
		return err
	}
	defer w.leave(len(w.keys))
	base := len(w.keys)
	var many map[string]struct{}
	for w.i++; ; w.i++ { // behind "{" or ","
		w.space()
		if w.next() == '}' {
			w.i++
			return nil
		}
		start := w.i + 1
		key, err := w.text()
		if err != nil {
			return err
		}
		w.path = append(w.path, step{key: key})
		if many, err = w.once(key, base, many); err != nil {
			return err
		}
		w.space()
		if err := w.take(':'); err != nil {
			return err
		}
		if err := w.value(w.member(s, key, start)); err != nil {
			return err
		}
		w.path = w.path[:len(w.path)-1]
		w.space()
		switch w.next() {
		case ',':
		case '}':
			w.i++
			return nil
		default:
			return errSyntax
		}
	}
}

// member is the shape of a named member.
func (w *walker) member(s *shape, key []byte, start int) *shape {
	switch s.form {
	case formTable:
		return s.elem
	case formObject:
		if f, ok := s.fields[string(key)]; ok {
			return f
		}
		for name := range s.fields {
			if strings.EqualFold(name, string(key)) {
				end := start + bytes.LastIndexByte(w.data[start:w.i], '"')
				w.mask = append(w.mask, [2]int{start, end})
				break
			}
		}
		return ignored
	case formIgnored:
		return ignored
	}
	return anything
}

// anything is the shape that every value has, ignored that of an unknown member.
var (
	anything = &shape{}
	ignored  = &shape{form: formIgnored}
)

// few is the number of names that are compared one with the other: more than
// any object of ours has, so that only strangers' objects need a map.
const few = 64

// once refuses a name that its object has already.
func (w *walker) once(key []byte, base int, many map[string]struct{}) (map[string]struct{}, error) {
	dup := false
	if many != nil {
		_, dup = many[string(key)]
		many[string(key)] = struct{}{}
	} else {
		for _, k := range w.keys[base:] {
			dup = dup || bytes.Equal(k, key)
		}
		w.keys = append(w.keys, key)
		if len(w.keys)-base > few {
			many = make(map[string]struct{})
			for _, k := range w.keys[base:] {
				many[string(k)] = struct{}{}
			}
		}
	}
	if dup {
		return many, w.refuse(CodeMalformed, "is given twice")
	}
	return many, nil
}

func (w *walker) list(s *shape) error {
	if err := w.enter(); err != nil {
		return err
	}
	defer w.leave(len(w.keys))
	elem := anything
	switch s.form {
	case formList:
		elem = s.elem
	case formIgnored:
		elem = ignored
	}
	w.i++
	w.space()
	if w.next() == ']' {
		w.i++
		return nil
	}
	for n := 0; ; n++ {
		w.path = append(w.path, step{index: n})
		if err := w.value(elem); err != nil {
			return err
		}
		w.path = w.path[:len(w.path)-1]
		w.space()
		if w.next() == ']' {
			w.i++
			return nil
		}
		if err := w.take(','); err != nil {
			return err
		}
	}
}

func (w *walker) enter() error {
	w.depth--
	if w.depth < 0 {
		return w.refuse(CodeMalformed, "nests too deep")
	}
	return nil
}

func (w *walker) leave(keys int) {
	w.depth++
	w.keys = w.keys[:keys]
}

// leaf reads a value of a type that reads itself.
func (w *walker) leaf(s *shape) error {
	start := w.i
	plain := *s
	plain.leaf = nil
	if err := w.value(&plain); err != nil {
		return err
	}
	err := json.Unmarshal(w.data[start:w.i], reflect.New(s.leaf).Interface())
	if err == nil {
		return nil
	}
	var refused *FieldError
	switch {
	case s.leaf == reflect.TypeFor[Timestamp]():
		return w.refuse(CodeInvalidField, strings.TrimPrefix(err.Error(), "timestamp: "))
	case errors.As(err, &refused):
		return &FieldError{Field: join(w.where(), refused.Field), Code: refused.Code, Reason: refused.Reason}
	case s.form == formBytes:
		return w.refuse(CodeInvalidField, "is not base64")
	case s.form == formText:
		return w.refuse(CodeInvalidField, strconv.Quote(clip(string(w.data[start+1:w.i-1])))+" is not RFC 3339")
	}
	return w.refuse(CodeInvalidField, clip(err.Error()))
}

func (w *walker) space() {
	for w.i < len(w.data) {
		switch w.data[w.i] {
		case ' ', '\t', '\r', '\n':
			w.i++
		default:
			return
		}
	}
}

// masked returns the text with members renamed that must be ignored.
func (w *walker) masked() []byte {
	if len(w.mask) == 0 {
		return w.data
	}
	out := bytes.Clone(w.data)
	for _, m := range w.mask {
		for i := m[0]; i < m[1]; i++ {
			out[i] = '-'
		}
	}
	return out
}
