package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// sets are the kernels that this processor runs. The reference of each test is
// computed in 64-bit floats.
func sets() map[string]*Set {
	return map[string]*Set{"best": Best(), "scalar": Scalar()}
}

func TestMultiply(t *testing.T) {
	t.Parallel()
	for name, set := range sets() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(rt *rapid.T) {
				rows, depth := rapid.IntRange(1, 11).Draw(rt, "rows"), rapid.IntRange(1, 40).Draw(rt, "depth")
				columns, gap := rapid.IntRange(1, 40).Draw(rt, "columns"), rapid.IntRange(0, 3).Draw(rt, "gap")
				checkProduct(rt, set, rows, depth, columns, gap)
			})
		})
	}
}

// checkProduct multiplies random matrices whose rows are gap numbers apart, and
// wants the gaps untouched.
func checkProduct(t *rapid.T, set *Set, rows, depth, columns, gap int) {
	var m Matrix
	m.Reset(depth, columns)
	a := View{random(rows * (depth + gap)), depth + gap}
	b, bias := random(depth*columns), random(m.Columns())
	for k := range depth {
		for j := range columns {
			m.Set(k, j, b[k*columns+j])
		}
	}
	c := View{random(rows * (m.Columns() + gap)), m.Columns() + gap}
	before := append([]float32(nil), c.Data...)
	set.Multiply(c, a, rows, &m, bias)
	for i := range rows {
		for j := range c.Stride {
			want := float64(before[i*c.Stride+j])
			if j < m.Columns() {
				want = float64(bias[j])
			}
			for k := 0; k < depth && j < columns; k++ {
				want += float64(a.Row(i)[k]) * float64(b[k*columns+j])
			}
			near(t, "product", c.Row(i)[j], want, 1e-5)
		}
	}
}

// TestMultiplyAlone: a row has the same numbers alone as among others.
func TestMultiplyAlone(t *testing.T) {
	t.Parallel()
	for name, set := range sets() {
		var m Matrix
		m.Reset(37, 48)
		copy(m.panels, random(len(m.panels)))
		a, c, bias := View{random(7 * 37), 37}, View{make([]float32, 7*48), 48}, random(48)
		set.Multiply(c, a, 7, &m, bias)
		for row := range 7 {
			alone := View{make([]float32, 48), 48}
			set.Multiply(alone, View{a.Row(row), 37}, 1, &m, bias)
			for j, x := range alone.Data {
				if x != c.Row(row)[j] {
					t.Fatalf("%s: row %d is %g alone and %g among others", name, row, x, c.Row(row)[j])
				}
			}
		}
	}
}

func TestDot(t *testing.T) {
	t.Parallel()
	for name, set := range sets() {
		for n := range 100 {
			a, b, want := random(n), random(n), 0.0
			for i := range a {
				want += float64(a[i]) * float64(b[i])
			}
			if got := float64(set.Dot(a, b)); math.Abs(got-want) > 1e-4 {
				t.Errorf("%s: of %d numbers %g, want %g", name, n, got, want)
			}
		}
	}
}

func TestSoftmax(t *testing.T) {
	t.Parallel()
	for name, set := range sets() {
		for _, n := range []int{8, 16, 128} {
			for _, spread := range []float32{0.1, 10, 1000} {
				x := scaled(random(n), spread)
				x[n-1] = float32(math.Inf(-1))
				want, sum, largest := make([]float64, n), 0.0, math.Inf(-1)
				for _, v := range x {
					largest = max(largest, float64(v))
				}
				for i, v := range x {
					want[i] = math.Exp(float64(v) - largest)
					sum += want[i]
				}
				set.Softmax(x)
				for i := range x {
					near(t, name, x[i], want[i]/sum, 1e-6)
				}
			}
		}
	}
}

func TestGELU(t *testing.T) {
	t.Parallel()
	for name, set := range sets() {
		var x []float32
		for v := float32(-12); v < 12; v += 1.0 / 256 {
			x = append(x, v)
		}
		got := append([]float32(nil), x...)
		set.GELU(got)
		for i, v := range x {
			near(t, name, got[i], 0.5*float64(v)*math.Erfc(-float64(v)/math.Sqrt2), 1e-6)
		}
	}
}

func TestNorm(t *testing.T) {
	t.Parallel()
	for name, set := range sets() {
		for _, n := range []int{8, 24, 384} {
			x, y, gain, bias := scaled(random(n), 3), random(n), random(n), random(n)
			var mean, variance float64
			for i := range x {
				mean += (float64(x[i]) + float64(y[i])) / float64(n)
			}
			for i := range x {
				variance += math.Pow(float64(x[i])+float64(y[i])-mean, 2) / float64(n)
			}
			want := make([]float64, n)
			for i := range x {
				want[i] = (float64(x[i])+float64(y[i])-mean)/math.Sqrt(variance+0.01)*float64(gain[i]) + float64(bias[i])
			}
			set.Norm(x, y, gain, bias, 0.01)
			for i := range x {
				near(t, fmt.Sprintf("%s %d", name, n), x[i], want[i], 2e-6)
			}
		}
	}
}

func TestLengths(t *testing.T) {
	t.Parallel()
	set := Best()
	set.Softmax(nil)
	set.GELU(nil)
	set.Norm(nil, nil, nil, nil, 0)
	for name, call := range map[string]func(){
		"lanes":  func() { set.GELU(make([]float32, 9)) },
		"short":  func() { set.Norm(make([]float32, 8), make([]float32, 7), nil, nil, 0) },
		"bounds": func() { product(set, 5, 4) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: a wrong length was taken", name)
				}
			}()
			call()
		}()
	}
}

// product multiplies a matrix of the given rows that has room for fewer.
func product(set *Set, rows, room int) {
	var m Matrix
	m.Reset(8, 16)
	set.Multiply(View{make([]float32, room*16), 16}, View{make([]float32, rows*8), 8}, rows, &m, make([]float32, 16))
}

// BenchmarkMultiply reports the multiplications in a nanosecond, of 64 rows with
// the largest matrix of a small model.
func BenchmarkMultiply(b *testing.B) {
	for name, set := range sets() {
		b.Run(name, func(b *testing.B) {
			const rows, depth, columns = 64, 384, 1536
			var m Matrix
			m.Reset(depth, columns)
			a, c, bias := View{random(rows * depth), depth}, View{make([]float32, rows*columns), columns}, make([]float32, columns)
			for b.Loop() {
				set.Multiply(c, a, rows, &m, bias)
			}
			b.ReportMetric(float64(rows*depth*columns)*float64(b.N)/float64(b.Elapsed().Nanoseconds()), "mul/ns")
		})
	}
}

func BenchmarkDot(b *testing.B) {
	for name, set := range sets() {
		b.Run(name, func(b *testing.B) {
			x, y := random(256), random(256)
			for b.Loop() {
				set.Dot(x, y)
			}
		})
	}
}

func BenchmarkElements(b *testing.B) {
	for name, set := range sets() {
		x, y, ones := random(1536), random(1536), scaled(make([]float32, 1536), 1)
		for kernel, run := range map[string]func(){
			"gelu": func() { set.GELU(x) }, "softmax": func() { set.Softmax(x) }, "norm": func() { set.Norm(x, y, ones, ones, 1) },
		} {
			b.Run(kernel+"/"+name, func(b *testing.B) {
				for b.Loop() {
					run()
				}
			})
		}
	}
}

func random(n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(rand.NormFloat64())
	}
	return x
}

func scaled(x []float32, by float32) []float32 {
	for i := range x {
		x[i] *= by
	}
	return x
}

// near wants got within the error of want, relative to numbers above 1.
func near(t interface {
	Helper()
	Fatalf(format string, args ...any)
}, what string, got float32, want, within float64) {
	t.Helper()
	if diff := math.Abs(float64(got) - want); !(diff <= within*max(1, math.Abs(want))) {
		t.Fatalf("%s: %g, want %g", what, got, want)
	}
}
