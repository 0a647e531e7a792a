package sqlite

import (
	"encoding/binary"
	"errors"
	"math"
)

// A vector is stored in one of three forms, all exact. The plain form is its
// numbers in single precision, little-endian. The packed form is for vectors like
// those of the local embedder, in which most numbers are zero and the others have
// few magnitudes:
//
//	1 byte          how many magnitudes there are
//	4 bytes each    the magnitudes, in single precision, little-endian
//	1 bit each      for each dimension, whether it is other than zero
//	1 byte each     for those that are, the sign (bit 7) and the magnitude's index
//
// It is used where it is the shorter one, so that the length tells which it is. The
// scaled form is for vectors whose numbers are multiples of one scale:
//
//	1 byte          255, which is no count of magnitudes
//	4 bytes         the scale, in single precision, little-endian
//	1 byte each     the multiple, from -127 to 127

var errVector = errors.New("sqlite: vector is damaged")

const (
	signBit       = 1 << 31
	maxMagnitudes = 128
	scaledForm    = 255
)

func encodeVector(values []float32) []byte {
	packed := packVector(values)
	if packed != nil && len(packed) <= 5+len(values) {
		return packed
	}
	if scaled := scaleVector(values); scaled != nil {
		return scaled
	}
	if packed != nil {
		return packed
	}
	raw := make([]byte, 0, 4*len(values))
	for _, v := range values {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(v))
	}
	return raw
}

// scaleVector returns the scaled form; nil where the numbers have none. The largest
// tells the scale up to its last bit.
func scaleVector(values []float32) []byte {
	var largest float32
	for _, v := range values {
		largest = max(largest, v, -v)
	}
	if scale := largest / math.MaxInt8; scale > 0 && len(values) > 4 {
		for _, s := range []float32{scale, math.Nextafter32(scale, 0), math.Nextafter32(scale, largest)} {
			if scaled := multiplesOf(s, values); scaled != nil {
				return scaled
			}
		}
	}
	return nil
}

func multiplesOf(scale float32, values []float32) []byte {
	scaled := append(make([]byte, 0, 5+len(values)), scaledForm)
	scaled = binary.LittleEndian.AppendUint32(scaled, math.Float32bits(scale))
	for _, v := range values {
		k := math.RoundToEven(float64(v) / float64(scale))
		if math.Abs(k) > math.MaxInt8 || math.Float32bits(float32(int8(k))*scale) != math.Float32bits(v) {
			return nil
		}
		scaled = append(scaled, byte(int8(k)))
	}
	return scaled
}

// packVector returns the packed form; nil where it is not the shorter one.
func packVector(values []float32) []byte {
	var magnitudes []uint32
	index := make(map[uint32]byte, maxMagnitudes)
	others := 0
	for _, v := range values {
		bits := math.Float32bits(v)
		if bits == 0 {
			continue
		}
		others++
		if _, known := index[bits&^signBit]; known {
			continue
		}
		if len(magnitudes) == maxMagnitudes {
			return nil
		}
		index[bits&^signBit] = byte(len(magnitudes))
		magnitudes = append(magnitudes, bits&^signBit)
	}
	size := 1 + 4*len(magnitudes) + bitmapBytes(len(values)) + others
	if size >= 4*len(values) {
		return nil
	}
	packed := append(make([]byte, 0, size), byte(len(magnitudes)))
	for _, m := range magnitudes {
		packed = binary.LittleEndian.AppendUint32(packed, m)
	}
	bitmap := packed[len(packed) : len(packed)+bitmapBytes(len(values))]
	packed = packed[:len(packed)+len(bitmap)]
	for i, v := range values {
		if bits := math.Float32bits(v); bits != 0 {
			bitmap[i/8] |= 1 << (i % 8)
			packed = append(packed, byte(bits>>31)<<7|index[bits&^signBit])
		}
	}
	return packed
}

func bitmapBytes(dimensions int) int { return (dimensions + 7) / 8 }

// decodeVector appends the numbers of a vector of so many dimensions.
func decodeVector(into []float32, raw []byte, dimensions int) ([]float32, error) {
	if len(raw) == 4*dimensions {
		for ; len(raw) >= 4; raw = raw[4:] {
			into = append(into, math.Float32frombits(binary.LittleEndian.Uint32(raw)))
		}
		return into, nil
	}
	if len(raw) == 5+dimensions && raw[0] == scaledForm {
		scale := math.Float32frombits(binary.LittleEndian.Uint32(raw[1:]))
		for _, k := range raw[5:] {
			into = append(into, float32(int8(k))*scale)
		}
		return into, nil
	}
	if len(raw) == 0 || len(raw) < 1+4*int(raw[0])+bitmapBytes(dimensions) {
		return into, errVector
	}
	magnitudes := raw[1 : 1+4*int(raw[0])]
	bitmap := raw[1+len(magnitudes):][:bitmapBytes(dimensions)]
	signed := raw[1+len(magnitudes)+len(bitmap):]
	for i := range dimensions {
		if bitmap[i/8]&(1<<(i%8)) == 0 {
			into = append(into, 0)
			continue
		}
		if len(signed) == 0 || 4*int(signed[0]&0x7f) >= len(magnitudes) {
			return into, errVector
		}
		bits := binary.LittleEndian.Uint32(magnitudes[4*int(signed[0]&0x7f):])
		into = append(into, math.Float32frombits(bits|uint32(signed[0]>>7)<<31))
		signed = signed[1:]
	}
	if len(signed) > 0 {
		return into, errVector
	}
	return into, nil
}
