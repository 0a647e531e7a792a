package transformer

import (
	"context"
	"math"

	"palimpsest/internal/embed/kernel"
)

// scratch is the memory of one run of the encoder. Rows are tokens.
type scratch struct {
	state, change, attend, joined, raised, scores kernel.View
	keys, values                                  kernel.Matrix
	zeros                                         []float32
}

// resize makes room for rows of all texts together, and of the longest alone.
func (s *scratch) resize(m *model, rows, longest int) {
	hidden, width := kernel.Padded(m.Hidden), m.Heads*m.head
	resize(&s.state, rows, hidden)
	resize(&s.change, rows, hidden)
	resize(&s.attend, rows, 3*width)
	resize(&s.joined, rows, width)
	resize(&s.raised, rows, kernel.Padded(m.Between))
	resize(&s.scores, longest, kernel.Padded(longest))
	if n := max(kernel.Padded(longest), m.head); len(s.zeros) < n {
		s.zeros = make([]float32, n)
	}
}

func resize(v *kernel.View, rows, stride int) {
	if n := rows * stride; n <= cap(v.Data) {
		v.Data = v.Data[:n]
	} else {
		v.Data = make([]float32, n)
	}
	v.Stride = stride
}

// encode runs texts through the model, each a sequence of tokens, and adds to
// vectors what each comes to. The only error is the context's.
func (m *model) encode(ctx context.Context, set *kernel.Set, s *scratch, texts [][]int32, vectors [][]float32) error {
	if len(texts) == 0 {
		return nil
	}
	rows, longest := 0, 0
	for _, ids := range texts {
		rows, longest = rows+len(ids), max(longest, len(ids))
	}
	s.resize(m, rows, longest)
	m.look(set, s, texts)
	for i := range m.layers {
		if err := ctx.Err(); err != nil {
			return err
		}
		m.attend(set, s, texts, rows, &m.layers[i])
		m.transform(set, s, rows, &m.layers[i])
	}
	m.pool(s, texts, vectors)
	return nil
}

// look sets each token's state to the vectors of its word and its place.
func (m *model) look(set *kernel.Set, s *scratch, texts [][]int32) {
	row := 0
	for _, ids := range texts {
		for place, id := range ids {
			state := s.state.Row(row)[:m.Hidden]
			copy(state, m.words[int(id)*m.Hidden:])
			set.Norm(state, m.positions[place*m.Hidden:], m.norm.gain, m.norm.bias, m.Epsilon)
			row++
		}
	}
}

// attend lets the tokens of each text look at each other (Vaswani et al. 2017).
func (m *model) attend(set *kernel.Set, s *scratch, texts [][]int32, rows int, l *layer) {
	set.Multiply(s.attend, s.state, rows, &l.attend.matrix, l.attend.bias)
	row := 0
	for _, ids := range texts {
		part := kernel.View{Data: s.attend.Row(row), Stride: s.attend.Stride}
		joined := kernel.View{Data: s.joined.Row(row), Stride: s.joined.Stride}
		for head := range m.Heads {
			m.attendHead(set, s, joined.From(head*m.head), part.From(head*m.head), len(ids))
		}
		row += len(ids)
	}
	set.Multiply(s.change, s.joined, rows, &l.join.matrix, l.join.bias)
	m.add(set, s, rows, l.attended)
}

// attendHead computes one head for a text of n tokens. The rows of part begin with
// the query; key and value follow at the same distance.
func (m *model) attendHead(set *kernel.Set, s *scratch, joined, part kernel.View, n int) {
	width := m.Heads * m.head
	s.keys.Reset(m.head, n)
	s.values.Reset(n, m.head)
	for i := range n {
		row := part.Row(i)
		panel, at := s.keys.Row(0, i)
		for k, x := range row[width:][:m.head] {
			panel[at+k*kernel.Width] = x
		}
		for column := 0; column < m.head; column += kernel.Width {
			panel, at := s.values.Row(i, column)
			copy(panel[at:][:kernel.Width], row[2*width+column:])
		}
	}
	scores := kernel.View{Data: s.scores.Data, Stride: s.keys.Columns()}
	set.Multiply(scores, part, n, &s.keys, s.zeros)
	for i := range n {
		row := scores.Row(i)[:scores.Stride]
		for j := n; j < len(row); j++ {
			row[j] = float32(math.Inf(-1))
		}
		set.Softmax(row)
	}
	set.Multiply(joined, scores, n, &s.values, s.zeros)
}

// transform passes each token through the two dense layers.
func (m *model) transform(set *kernel.Set, s *scratch, rows int, l *layer) {
	set.Multiply(s.raised, s.state, rows, &l.up.matrix, l.up.bias)
	set.GELU(s.raised.Data)
	set.Multiply(s.change, s.raised, rows, &l.down.matrix, l.down.bias)
	m.add(set, s, rows, l.raised)
}

// add adds the change of each token to its state.
func (m *model) add(set *kernel.Set, s *scratch, rows int, by scaling) {
	for i := range rows {
		set.Norm(s.state.Row(i)[:m.Hidden], s.change.Row(i)[:m.Hidden], by.gain, by.bias, m.Epsilon)
	}
}

// pool adds to each vector the states of its text's tokens, or the first alone.
// Their number does not matter to a vector's direction.
func (m *model) pool(s *scratch, texts [][]int32, vectors [][]float32) {
	row := 0
	for i, ids := range texts {
		for place := range ids {
			if place > 0 && m.first {
				break
			}
			for k, x := range s.state.Row(row + place)[:m.Hidden] {
				vectors[i][k] += x
			}
		}
		row += len(ids)
	}
}
