package kernel

import "math"

// constants of exp and of the error function; a row is one constant. The assembly
// reads them by row.
//
// exp(x) = 2ⁿ·exp(r), n the integer nearest to x/ln 2, by Taylor's series of
// exp(r) to the sixth power. erfc(z) for z ≥ 0 is Abramowitz and Stegun 7.1.26,
// with an error below 1.5e-7.
//
//nolint:unused // by Go: the assembly reads them
var constants = func() (rows [len(values)][Lanes]float32) {
	for i, v := range values {
		for j := range rows[i] {
			rows[i][j] = v
		}
	}
	return rows
}()

// values has ln 2 in two parts, so that n times the first is exact.
var values = [...]float32{
	0: 1 / math.Ln2, 1: 0.693359375, 2: math.Ln2 - 0.693359375,
	3: 1.0 / 720, 4: 1.0 / 120, 5: 1.0 / 24, 6: 1.0 / 6, 7: 0.5, 8: 1, 9: least,
	10: 1 / math.Sqrt2, 11: 0.3275911,
	12: 1.061405429, 13: -1.453152027, 14: 1.421413741, 15: -0.284496736, 16: 0.254829592,
}

// least is an exponent whose power is as good as 0 and still a normal number.
const least = -86

// multiplyScalar computes the columns of one panel. It keeps eight sums in
// registers at a time.
func multiplyScalar(c, a View, rows, depth int, panel, bias []float32) {
	for i := range rows {
		in, out := a.Row(i)[:depth], c.Row(i)[:Width]
		for j := 0; j < Width; j += Lanes {
			s := [Lanes]float32(bias[j:])
			s0, s1, s2, s3, s4, s5, s6, s7 := s[0], s[1], s[2], s[3], s[4], s[5], s[6], s[7]
			for k, x := range in {
				row := (*[Lanes]float32)(panel[k*Width+j:])
				s0 += x * row[0]
				s1 += x * row[1]
				s2 += x * row[2]
				s3 += x * row[3]
				s4 += x * row[4]
				s5 += x * row[5]
				s6 += x * row[6]
				s7 += x * row[7]
			}
			copy(out[j:], []float32{s0, s1, s2, s3, s4, s5, s6, s7})
		}
	}
}

func softmaxScalar(x []float32) {
	largest := x[0]
	for _, v := range x {
		largest = max(largest, v)
	}
	var sum float32
	for i, v := range x {
		x[i] = exp(v - largest)
		sum += x[i]
	}
	scale := 1 / sum
	for i := range x {
		x[i] *= scale
	}
}

func geluScalar(x []float32) {
	v := &values
	for i, x0 := range x {
		size := max(x0, -x0)
		z := size * v[10]
		t := 1 / (1 + v[11]*z)
		q := ((((v[12]*t+v[13])*t+v[14])*t+v[15])*t + v[16]) * t * exp(-z*z)
		x[i] = max(x0, 0) - 0.5*size*q
	}
}

func exp(x float32) float32 {
	v := &values
	x = max(x, least)
	n := float32(math.RoundToEven(float64(x * v[0])))
	r := x - n*v[1] - n*v[2]
	p := (((((v[3]*r+v[4])*r+v[5])*r+v[6])*r+v[7])*r+1)*r + 1
	return math.Float32frombits(math.Float32bits(p) + uint32(int32(n))<<23)
}

func normScalar(x, y, gain, bias []float32, epsilon float32) {
	var sum float32
	for i := range x {
		x[i] += y[i]
		sum += x[i]
	}
	mean := sum / float32(len(x))
	var squares float32
	for _, v := range x {
		squares += (v - mean) * (v - mean)
	}
	scale := float32(1 / math.Sqrt(float64(squares/float32(len(x))+epsilon)))
	for i := range x {
		x[i] = (x[i]-mean)*scale*gain[i] + bias[i]
	}
}
