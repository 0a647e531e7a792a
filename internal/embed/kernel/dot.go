package kernel

// Dot is the inner product of two vectors of one length.
func (s *Set) Dot(a, b []float32) float32 {
	b = b[:len(a)]
	whole := 0
	sum := float32(0)
	if s.dot != nil && len(a) >= Lanes {
		whole = len(a) / Lanes * Lanes
		sum = s.dot(whole, &a[0], &b[0])
	}
	return sum + dotScalar(a[whole:], b[whole:])
}

// dotScalar keeps eight sums apart, so that no addition waits for the one before.
func dotScalar(a, b []float32) float32 {
	b = b[:len(a)]
	var s0, s1, s2, s3, s4, s5, s6, s7 float32
	for len(a) >= 8 && len(b) >= 8 {
		x, y := (*[8]float32)(a), (*[8]float32)(b)
		s0 += x[0] * y[0]
		s1 += x[1] * y[1]
		s2 += x[2] * y[2]
		s3 += x[3] * y[3]
		s4 += x[4] * y[4]
		s5 += x[5] * y[5]
		s6 += x[6] * y[6]
		s7 += x[7] * y[7]
		a, b = a[8:], b[8:]
	}
	for i := range a {
		s0 += a[i] * b[i]
	}
	return ((s0 + s1) + (s2 + s3)) + ((s4 + s5) + (s6 + s7))
}
