package transformer

import (
	"fmt"
	"math"
	"slices"

	"palimpsest/internal/embed/kernel"
	"palimpsest/internal/embed/safetensors"
)

// model is the weights, laid out for the kernels.
type model struct {
	settings
	words     []float32 // a row for each token
	positions []float32 // a row for each place, with that of the first type added
	norm      scaling
	layers    []layer
	head      int // columns of an attention head, padded
}

// layer is one block of the encoder.
type layer struct {
	attend           linear // to queries, keys and values; a third each, then by head
	join, up, down   linear
	attended, raised scaling
}

// linear is a matrix and the bias that is added to each row of a product with it.
type linear struct {
	matrix kernel.Matrix
	bias   []float32
}

// scaling is the parameters of a layer normalisation.
type scaling struct{ gain, bias []float32 }

// reader takes tensors out of a file. The first error stays.
type reader struct {
	tensors map[string]safetensors.Tensor
	err     error
}

func newModel(s settings, data []byte) (*model, error) {
	tensors, err := safetensors.Parse(data)
	if err != nil {
		return nil, err
	}
	r := &reader{tensors: tensors}
	m := &model{
		settings:  s,
		words:     r.floats("embeddings.word_embeddings.weight", s.Vocabulary, s.Hidden),
		positions: r.floats("embeddings.position_embeddings.weight", s.Positions, s.Hidden),
		norm:      r.scaling("embeddings.LayerNorm", s.Hidden),
		head:      kernel.Padded(s.headSize()),
	}
	types := r.floats("embeddings.token_type_embeddings.weight", s.Types, s.Hidden)
	for i := 0; i < s.Layers && r.err == nil; i++ {
		m.layers = append(m.layers, m.readLayer(r, fmt.Sprintf("encoder.layer.%d.", i)))
	}
	if r.err != nil {
		return nil, r.err
	}
	for i := range m.positions {
		m.positions[i] += types[i%s.Hidden]
	}
	return m, nil
}

func (m *model) readLayer(r *reader, name string) layer {
	l := layer{
		attended: r.scaling(name+"attention.output.LayerNorm", m.Hidden),
		raised:   r.scaling(name+"output.LayerNorm", m.Hidden),
	}
	plain := func(i int) int { return i }
	// byHead is the place of a dimension where each head is padded.
	byHead := func(i int) int { return i/m.headSize()*m.head + i%m.headSize() }
	width := m.Heads * m.head
	l.attend.reset(m.Hidden, 3*width)
	// The scores of attention are divided by the root of a head's size: so are the
	// queries here, once and for all.
	for i, part := range []string{"query", "key", "value"} {
		scale := float32(1)
		if part == "query" {
			scale = float32(1 / math.Sqrt(float64(m.headSize())))
		}
		r.linear(&l.attend, name+"attention.self."+part, m.Hidden, m.Hidden, plain, func(j int) int { return i*width + byHead(j) }, scale)
	}
	l.join.reset(width, m.Hidden)
	r.linear(&l.join, name+"attention.output.dense", m.Hidden, m.Hidden, byHead, plain, 1)
	l.up.reset(m.Hidden, m.Between)
	r.linear(&l.up, name+"intermediate.dense", m.Hidden, m.Between, plain, plain, 1)
	l.down.reset(m.Between, m.Hidden)
	r.linear(&l.down, name+"output.dense", m.Between, m.Hidden, plain, plain, 1)
	return l
}

func (l *linear) reset(depth, columns int) {
	l.matrix.Reset(depth, columns)
	l.bias = make([]float32, l.matrix.Columns())
}

// linear reads a layer from in to out numbers times scale into the given rows and
// columns of into. The file has the columns as rows.
func (r *reader) linear(into *linear, name string, in, out int, row, column func(int) int, scale float32) {
	weight, bias := r.floats(name+".weight", out, in), r.floats(name+".bias", out)
	if r.err != nil {
		return
	}
	for j := range out {
		into.bias[column(j)] = bias[j] * scale
		for k, x := range weight[j*in:][:in] {
			into.matrix.Set(row(k), column(j), x*scale)
		}
	}
}

func (r *reader) scaling(name string, size int) scaling {
	return scaling{r.floats(name+".weight", size), r.floats(name+".bias", size)}
}

// floats returns the numbers of a tensor, which must have the given shape. Some
// files name the encoder before each of its tensors.
func (r *reader) floats(name string, shape ...int) []float32 {
	if r.err != nil {
		return nil
	}
	tensor, ok := r.tensors[name]
	if !ok {
		tensor, ok = r.tensors["bert."+name]
	}
	if !ok {
		r.err = fmt.Errorf("there is no tensor %s", name)
		return nil
	}
	if !slices.Equal(tensor.Shape, shape) {
		r.err = fmt.Errorf("tensor %s has the shape %v, not %v", name, tensor.Shape, shape)
		return nil
	}
	numbers, err := tensor.Float32s()
	if err != nil {
		r.err = fmt.Errorf("tensor %s: %w", name, err)
		return nil
	}
	for _, x := range numbers {
		if x-x != 0 {
			r.err = fmt.Errorf("tensor %s holds %g", name, x)
			return nil
		}
	}
	return numbers
}

// bytes is the memory of the weights, but for the vectors of few numbers.
func (m *model) bytes() int {
	n := 4 * (len(m.words) + len(m.positions))
	for i := range m.layers {
		l := &m.layers[i]
		n += l.attend.matrix.Bytes() + l.join.matrix.Bytes() + l.up.matrix.Bytes() + l.down.matrix.Bytes()
	}
	return n
}
