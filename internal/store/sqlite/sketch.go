package sqlite

import (
	"math/bits"
	"math/rand/v2"
)

// A sketch is the signs of a vector's numbers after a rotation, a bit each. The share
// of equal bits rises with the similarity of two vectors (Charikar 2002). The rotation
// spreads what differs over all bits: signs and a Walsh-Hadamard transform, over the
// numbers padded to a power of two (Ailon and Chazelle 2009).
type sketcher struct {
	signs   []float32
	rotated []float32
}

const (
	wordBits = 64
	// rotationSeed is constant: sketches of one program are compared with one another.
	rotationSeed = 1
)

// newSketcher returns one for vectors of so many dimensions. It is for one goroutine.
func newSketcher(dimensions int) *sketcher {
	size := wordBits
	for size < dimensions {
		size *= 2
	}
	k := &sketcher{make([]float32, size), make([]float32, size)}
	r := rand.New(rand.NewPCG(rotationSeed, rotationSeed))
	for i := range k.signs {
		k.signs[i] = float32(1 - 2*r.IntN(2))
	}
	return k
}

// words is how many words a sketch has.
func (k *sketcher) words() int { return len(k.signs) / wordBits }

// sketch writes the sketch of a vector.
func (k *sketcher) sketch(into []uint64, vector []float32) {
	x := k.rotated
	clear(x[copy(x, vector):])
	for i, sign := range k.signs {
		x[i] *= sign
	}
	for half := 1; half < len(x); half *= 2 {
		for at := 0; at < len(x); at += 2 * half {
			a, b := x[at:at+half], x[at+half:at+2*half]
			b = b[:len(a)]
			for i := range a {
				a[i], b[i] = a[i]+b[i], a[i]-b[i]
			}
		}
	}
	for w := range into {
		word := uint64(0)
		for i, number := range x[w*wordBits : (w+1)*wordBits] {
			if number > 0 {
				word |= 1 << i
			}
		}
		into[w] = word
	}
}

// differences sets how many bits each sketch has unlike query.
func differences(into []uint16, sketches, query []uint64) {
	if len(query) == 4 { // 256 dimensions
		q0, q1, q2, q3 := query[0], query[1], query[2], query[3]
		for i := range into {
			s := (*[4]uint64)(sketches[4*i:])
			into[i] = uint16(bits.OnesCount64(s[0]^q0) + bits.OnesCount64(s[1]^q1) + bits.OnesCount64(s[2]^q2) + bits.OnesCount64(s[3]^q3))
		}
		return
	}
	for i := range into {
		unlike := 0
		for w, word := range sketches[i*len(query) : (i+1)*len(query)] {
			unlike += bits.OnesCount64(word ^ query[w])
		}
		into[i] = uint16(unlike)
	}
}

// probe is a question to sketches.
type probe struct {
	sketch []uint64
	// shares is what the signs in each byte of a sketch add to its estimated
	// similarity.
	shares [][256]float32
}

func newProbe(query []float32) *probe {
	k := newSketcher(len(query))
	p := &probe{make([]uint64, k.words()), make([][256]float32, 8*k.words())}
	k.sketch(p.sketch, query)
	for b := range p.shares {
		share, numbers := &p.shares[b], k.rotated[8*b:8*b+8]
		for _, x := range numbers {
			share[0] -= x
		}
		for signs := 1; signs < len(share); signs++ { // one sign more than a share that is known
			share[signs] = share[signs&(signs-1)] + 2*numbers[bits.TrailingZeros(uint(signs))]
		}
	}
	return p
}

// estimate rises with the similarity of the vector of a sketch to the query, whose
// numbers weigh the signs (Gong et al. 2013). It tells more than their difference.
func (p *probe) estimate(sketch []uint64) float64 {
	sum := float32(0)
	for w, word := range sketch {
		shares := p.shares[8*w : 8*w+8]
		for i := range shares {
			sum += shares[i][byte(word>>(8*i))]
		}
	}
	return float64(sum)
}
