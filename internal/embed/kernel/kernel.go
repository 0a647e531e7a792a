package kernel

const (
	// Width is the number of columns that are computed together. Columns of a
	// [Matrix] are padded to a multiple of it.
	Width = 16
	// height is the number of rows that are computed together.
	height = 4
	// Lanes divides the length of what [Set.Softmax], [Set.GELU] and [Set.Norm]
	// take.
	Lanes = 8
)

// tile names the rows of one tile of a product: those read and those written. Rows
// may repeat.
type tile struct {
	a, c [height]*float32
}

// Set is the kernels for one kind of processor. It is safe for concurrent use.
type Set struct {
	// Name is avx2, neon or scalar.
	Name string

	// multiply computes a tile of height rows and Width columns: c = bias + a·b,
	// where the depth rows of b follow each other. Without one, Go computes.
	multiply func(depth int, t *tile, b, bias *float32)
	// dot takes a multiple of [Lanes] numbers. Without one, Go computes.
	dot     func(n int, a, b *float32) float32
	softmax func(x []float32)
	gelu    func(x []float32)
	norm    func(x, y, gain, bias []float32, epsilon float32)
}

// Scalar returns the kernels that run on all processors.
func Scalar() *Set {
	return &Set{Name: "scalar", softmax: softmaxScalar, gelu: geluScalar, norm: normScalar}
}

// Matrix is the right side of a product, laid out in panels of [Width] columns.
type Matrix struct {
	depth, columns int
	panels         []float32
}

// Padded is the least multiple of [Width] that is not below n.
func Padded(n int) int { return (n + Width - 1) / Width * Width }

// Reset makes m a matrix of zeros, in the memory that it has if that is enough.
func (m *Matrix) Reset(depth, columns int) {
	m.depth, m.columns = depth, Padded(columns)
	if n := m.depth * m.columns; n <= cap(m.panels) {
		m.panels = m.panels[:n]
		clear(m.panels)
	} else {
		m.panels = make([]float32, n)
	}
}

// Columns is the number of columns, padded.
func (m *Matrix) Columns() int { return m.columns }

// Row returns the panel of a column and the index in it of the given row of that
// column. The rows that follow are [Width] apart; the columns that follow, up to
// the next multiple of Width, stand beside it.
func (m *Matrix) Row(row, column int) (panel []float32, at int) {
	panel = m.panels[column/Width*Width*m.depth:][:Width*m.depth]
	return panel, row*Width + column%Width
}

// Set sets one number.
func (m *Matrix) Set(row, column int, x float32) {
	panel, at := m.Row(row, column)
	panel[at] = x
}

// Bytes is the memory that m holds.
func (m *Matrix) Bytes() int { return 4 * cap(m.panels) }

// View is rows of equal length within a slice, Stride apart.
type View struct {
	Data   []float32
	Stride int
}

// Row returns the row i from its first number on.
func (v View) Row(i int) []float32 { return v.Data[i*v.Stride:] }

// From returns a view of the columns from column on.
func (v View) From(column int) View { return View{v.Data[column:], v.Stride} }

// Multiply sets the first rows of c to a·m with bias added to each. A row of c
// takes all columns of m, also the padded ones; bias has as many numbers. c must
// not overlap a.
func (s *Set) Multiply(c, a View, rows int, m *Matrix, bias []float32) {
	if rows == 0 || m.depth == 0 {
		return
	}
	// The kernel checks no bounds.
	_, _, _ = a.Row(rows - 1)[m.depth-1], c.Row(rows - 1)[m.columns-1], bias[m.columns-1]
	var t tile
	for column := 0; column < m.columns; column += Width {
		panel, _ := m.Row(0, column)
		if s.multiply == nil {
			multiplyScalar(c.From(column), a, rows, m.depth, panel, bias[column:])
			continue
		}
		for row := 0; row < rows; row += height {
			for i := range height {
				r := min(row+i, rows-1)
				t.a[i], t.c[i] = &a.Data[r*a.Stride], &c.Data[r*c.Stride+column]
			}
			s.multiply(m.depth, &t, &panel[0], &bias[column])
		}
	}
}

// Softmax replaces x by exp(x) divided by the sum of all exp(x). The length of x
// must be a multiple of [Lanes].
func (s *Set) Softmax(x []float32) {
	if whole(x) {
		s.softmax(x)
	}
}

// GELU replaces each x by x·Φ(x), where Φ is the distribution function of the
// normal distribution (Hendrycks and Gimpel 2016), within 1e-6. The length of x
// must be a multiple of [Lanes].
func (s *Set) GELU(x []float32) {
	if whole(x) {
		s.gelu(x)
	}
}

// Norm adds y to x, and scales the sum to mean 0 and variance 1, then by gain, and
// adds bias (Ba, Kiros and Hinton 2016). All must be of one length, a multiple of
// [Lanes].
func (s *Set) Norm(x, y, gain, bias []float32, epsilon float32) {
	if whole(x) {
		s.norm(x, y[:len(x)], gain[:len(x)], bias[:len(x)], epsilon)
	}
}

func whole(x []float32) bool {
	if len(x)%Lanes != 0 {
		panic("kernel: the length is not a multiple of 8")
	}
	return len(x) > 0
}
