package redisdouble

import (
	"encoding/binary"
	"errors"
	"math"
	"strconv"
	"strings"
	"unicode"
)

// document is a hash as an index holds it. The fields of each kind are numbered
// by themselves; absent is nil, or NaN for a number.
type document struct {
	id      uint64 // grows with each write
	key     string
	hash    map[string]string
	tags    [][]string
	numbers []float64
	terms   []map[string]int // how often each
	vectors [][]float32      // of length 1
	length  int              // terms in all
	seen    uint64           // the search that met it last
}

// newDocument reads what the fields say. One that cannot be read keeps the whole
// document out.
func newDocument(id uint64, key string, hash map[string]string, s *schema) (*document, error) {
	d := &document{
		id: id, key: key, hash: hash, tags: make([][]string, s.counts[tagField]), numbers: make([]float64, s.counts[numericField]),
		terms: make([]map[string]int, s.counts[textField]), vectors: make([][]float32, s.counts[vectorField]),
	}
	for i := range d.numbers {
		d.numbers[i] = math.NaN()
	}
	for _, f := range s.fields {
		if text, ok := hash[f.name]; ok {
			if err := d.read(f, text); err != nil {
				return nil, err
			}
		}
	}
	return d, nil
}

func (d *document) read(f *field, text string) (err error) {
	switch f.kind {
	case tagField:
		d.tags[f.column] = f.split(text)
	case numericField:
		d.numbers[f.column], err = parseNumber(text)
	case textField:
		counts := map[string]int{}
		for _, term := range tokens(text) {
			counts[term]++
			d.length++
		}
		d.terms[f.column] = counts
	case vectorField:
		d.vectors[f.column], err = f.parseVector(text)
	}
	return err
}

func parseNumber(text string) (float64, error) {
	x, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(x) {
		return 0, refusal("Invalid numeric value: '%s'", text)
	}
	return x, nil
}

func (f *field) split(text string) (tags []string) {
	for tag := range strings.SplitSeq(text, f.separator) {
		if tag = strings.TrimSpace(tag); tag != "" {
			tags = append(tags, f.fold(tag))
		}
	}
	return tags
}

func (f *field) fold(tag string) string {
	if f.caseSensitive {
		return tag
	}
	return strings.ToLower(tag)
}

// tokens are the words of a text, in lower case.
func tokens(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return r != '_' && (unicode.IsSpace(r) || r < unicode.MaxASCII && !unicode.IsLetter(r) && !unicode.IsDigit(r))
	})
}

// parseVector reads float32s in the byte order of the machines that Redis runs
// on.
func (f *field) parseVector(blob string) ([]float32, error) {
	if want := 4 * f.dimensions; len(blob) != want {
		return nil, refusal("Could not add vector with blob size %d (expected size %d)", len(blob), want)
	}
	v := make([]float32, f.dimensions)
	var squares float32
	for i := range v {
		v[i] = math.Float32frombits(binary.LittleEndian.Uint32([]byte(blob[4*i:])))
		squares += v[i] * v[i]
	}
	if squares == 0 || math.IsNaN(float64(squares)) || math.IsInf(float64(squares), 0) {
		return nil, errors.New("REDISDOUBLE a vector without a direction is not in the double")
	}
	norm := float32(math.Sqrt(float64(squares)))
	for i := range v {
		v[i] /= norm
	}
	return v, nil
}

// distance is one less the cosine, of vectors of length 1.
func distance(a, b []float32) float64 {
	var dot float32
	for i := range a {
		dot += a[i] * b[i]
	}
	return float64(1 - dot)
}
