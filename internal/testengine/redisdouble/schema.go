package redisdouble

import (
	"strconv"
	"strings"
)

// kind is what a field is indexed as.
type kind string

const (
	tagField     kind = "TAG"
	numericField kind = "NUMERIC"
	textField    kind = "TEXT"
	vectorField  kind = "VECTOR"
)

// field is a column of an index.
type field struct {
	name string
	kind
	sortable      bool
	caseSensitive bool
	separator     string
	dimensions    int
	column        int // among those of its kind
}

// schema are the fields of an index.
type schema struct {
	fields []*field
	byName map[string]*field
	counts map[kind]int
}

// add appends a field.
func (s *schema) add(f field) error {
	if s.byName[f.name] != nil {
		return refusal("Duplicate field in schema - %s", f.name)
	}
	f.column = s.counts[f.kind]
	s.counts[f.kind]++
	s.byName[f.name] = &f
	s.fields = append(s.fields, &f)
	return nil
}

// extended is the schema with the fields that the arguments name, to their end.
func (s *schema) extended(w *words) (*schema, error) {
	out := &schema{byName: map[string]*field{}, counts: map[kind]int{}}
	for _, f := range s.fields {
		_ = out.add(*f) // it was added before
	}
	for w.more() {
		f, err := parseField(w)
		if err == nil {
			err = out.add(f)
		}
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// words are arguments that are read from the front.
type words struct {
	list []string
	at   int
}

func (w *words) more() bool { return w.at < len(w.list) }

// next is the next argument; "" behind the last.
func (w *words) next() string {
	if !w.more() {
		return ""
	}
	w.at++
	return w.list[w.at-1]
}

// take skips the next arguments if they are these.
func (w *words) take(names ...string) bool {
	if w.at+len(names) > len(w.list) {
		return false
	}
	for i, name := range names {
		if !strings.EqualFold(w.list[w.at+i], name) {
			return false
		}
	}
	w.at += len(names)
	return true
}

// count reads a number and as many arguments.
func (w *words) count() ([]string, error) {
	n, err := w.number()
	if err != nil || n < 0 || w.at+n > len(w.list) {
		return nil, refusal("Bad arguments: expected a number of arguments and the arguments")
	}
	w.at += n
	return w.list[w.at-n : w.at], nil
}

func (w *words) number() (int, error) {
	n, err := strconv.Atoi(w.next())
	if err != nil {
		return 0, refusal("Bad arguments: expected a number")
	}
	return n, nil
}

func (w *words) rest() []string { return w.list[w.at:] }

func parseField(w *words) (field, error) {
	f := field{name: w.next(), separator: ","}
	switch {
	case w.take("VECTOR"):
		return parseVectorField(f, w)
	case w.take("TAG"):
		f.kind = tagField
	case w.take("NUMERIC"):
		f.kind = numericField
	case w.take("TEXT", "NOSTEM"):
		f.kind = textField
	default:
		return f, errUnknown("field "+f.name, w.rest())
	}
	for more := f.kind == tagField; more; {
		switch {
		case w.take("SEPARATOR"):
			f.separator = w.next()
		case w.take("CASESENSITIVE"):
			f.caseSensitive = true
		default:
			more = false
		}
	}
	if f.kind != textField && w.take("SORTABLE") {
		f.sortable = true
		if !w.take("UNF") && f.kind == tagField {
			return f, errUnknown("sortable tags without UNF", nil)
		}
	}
	return f, nil
}

func parseVectorField(f field, w *words) (field, error) {
	f.kind = vectorField
	if !w.take("FLAT") && !w.take("HNSW") {
		return f, errUnknown("vector index", w.rest())
	}
	settings, err := w.count()
	if err != nil {
		return f, err
	}
	for i := 0; i+1 < len(settings); i += 2 {
		value := settings[i+1]
		switch setting := strings.ToUpper(settings[i]); {
		case setting == "TYPE" && value == "FLOAT32", setting == "DISTANCE_METRIC" && value == "COSINE":
		case setting == "DIM":
			if f.dimensions, err = strconv.Atoi(value); err != nil {
				return f, errUnknown("dimensions", settings)
			}
		case setting == "M", setting == "EF_CONSTRUCTION", setting == "EF_RUNTIME", setting == "INITIAL_CAP", setting == "BLOCK_SIZE":
		default:
			return f, errUnknown("vector setting", settings[i:i+2])
		}
	}
	return f, nil
}
