package safetensors

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
)

// maxHeader is the longest header in bytes; the reference implementation has
// the same limit.
const maxHeader = 100 << 20

// Tensor is a view of the file's bytes. Numbers are little-endian, rows first.
type Tensor struct {
	// Type is F64, F32, F16, BF16, I64, I32, I16, I8, U8 or another name of the
	// format.
	Type  string
	Shape []int
	Data  []byte
}

type entry struct {
	Type    string   `json:"dtype"`
	Shape   []int    `json:"shape"`
	Offsets [2]int64 `json:"data_offsets"`
}

// Parse returns the tensors of a file by name. They share data's memory.
func Parse(data []byte) (map[string]Tensor, error) {
	if len(data) < 8 {
		return nil, errors.New("safetensors: file is too short")
	}
	size := binary.LittleEndian.Uint64(data)
	if size > maxHeader || size > uint64(len(data)-8) {
		return nil, fmt.Errorf("safetensors: header of %d bytes", size)
	}
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(data[8:8+size], &raw); err != nil {
		return nil, fmt.Errorf("safetensors: header: %w", err)
	}
	body := data[8+size:]
	tensors := make(map[string]Tensor, len(raw))
	for name, text := range raw {
		if name == "__metadata__" {
			continue
		}
		tensor, err := cut(body, text)
		if err != nil {
			return nil, fmt.Errorf("safetensors: tensor %q: %w", name, err)
		}
		tensors[name] = tensor
	}
	return tensors, nil
}

func cut(body []byte, text json.RawMessage) (Tensor, error) {
	var e entry
	if err := json.Unmarshal(text, &e); err != nil {
		return Tensor{}, err
	}
	begin, end := e.Offsets[0], e.Offsets[1]
	if begin < 0 || end < begin || end > int64(len(body)) {
		return Tensor{}, fmt.Errorf("offsets %d to %d of %d bytes", begin, end, len(body))
	}
	t := Tensor{Type: e.Type, Shape: e.Shape, Data: body[begin:end:end]}
	n, err := t.numbers()
	if width := widths[e.Type]; err == nil && width != 0 && n*width != len(t.Data) {
		err = fmt.Errorf("%d bytes for %v of %s", len(t.Data), t.Shape, t.Type)
	}
	return t, err
}

// widths are the bytes of one number of the types that [Tensor.Float32s] or
// [Tensor.Ints] reads.
var widths = map[string]int{"F64": 8, "F32": 4, "F16": 2, "I64": 8, "I32": 4, "I8": 1}

// numbers is the product of the shape.
func (t Tensor) numbers() (int, error) {
	n := 1
	for _, size := range t.Shape {
		if size < 0 || size > 0 && n > math.MaxInt32/size {
			return 0, fmt.Errorf("shape %v", t.Shape)
		}
		n *= size
	}
	return n, nil
}

// Float32s returns the numbers of a tensor of F64, F32, F16 or I8.
func (t Tensor) Float32s() ([]float32, error) {
	var read func(b []byte) float32
	switch t.Type {
	case "F64":
		read = func(b []byte) float32 { return float32(math.Float64frombits(binary.LittleEndian.Uint64(b))) }
	case "F32":
		read = func(b []byte) float32 { return math.Float32frombits(binary.LittleEndian.Uint32(b)) }
	case "F16":
		read = func(b []byte) float32 { return half(binary.LittleEndian.Uint16(b)) }
	case "I8":
		read = func(b []byte) float32 { return float32(int8(b[0])) }
	default:
		return nil, fmt.Errorf("safetensors: numbers of type %s are not supported", t.Type)
	}
	width := widths[t.Type]
	out := make([]float32, len(t.Data)/width)
	for i := range out {
		out[i] = read(t.Data[i*width:])
	}
	return out, nil
}

// Ints returns the numbers of a tensor of I64 or I32.
func (t Tensor) Ints() ([]int, error) {
	if t.Type != "I64" && t.Type != "I32" {
		return nil, fmt.Errorf("safetensors: %s is no supported type of integers", t.Type)
	}
	width := widths[t.Type]
	out := make([]int, len(t.Data)/width)
	for i := range out {
		if b := t.Data[i*width:]; width == 8 {
			out[i] = int(int64(binary.LittleEndian.Uint64(b)))
		} else {
			out[i] = int(int32(binary.LittleEndian.Uint32(b)))
		}
	}
	return out, nil
}

// half widens an IEEE 754 binary16.
func half(h uint16) float32 {
	sign, exponent, fraction := uint32(h>>15)<<31, uint32(h>>10)&0x1f, uint32(h)&0x3ff
	switch exponent {
	case 0: // zero or subnormal: fraction × 2⁻²⁴
		return math.Float32frombits(sign | math.Float32bits(float32(fraction)/(1<<24)))
	case 0x1f: // infinite or not a number
		return math.Float32frombits(sign | 0x7f800000 | fraction<<13)
	}
	return math.Float32frombits(sign | (exponent+127-15)<<23 | fraction<<13)
}
