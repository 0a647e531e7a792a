package safetensors_test

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"palimpsest/internal/embed/safetensors"
)

func file(header string, body ...byte) []byte {
	data := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(data, header...), body...)
}

func TestParse(t *testing.T) {
	t.Parallel()
	header := `{"__metadata__":{"format":"np"},
		"d":{"dtype":"F64","shape":[1],"data_offsets":[0,8]},
		"f":{"dtype":"F32","shape":[2,1],"data_offsets":[8,16]},
		"h":{"dtype":"F16","shape":[4],"data_offsets":[16,24]},
		"b":{"dtype":"I8","shape":[2],"data_offsets":[24,26]}}`
	body := binary.LittleEndian.AppendUint64(nil, math.Float64bits(-2.5))
	for _, f := range []float32{1.5, -0.25} {
		body = binary.LittleEndian.AppendUint32(body, math.Float32bits(f))
	}
	for _, h := range []uint16{0x3c00, 0xc000, 0x0001, 0x7bff} {
		body = binary.LittleEndian.AppendUint16(body, h)
	}
	body = append(body, 0x7f, 0x81)
	tensors, err := safetensors.Parse(file(header, body...))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][]float32{"d": {-2.5}, "f": {1.5, -0.25}, "h": {1, -2, 1.0 / (1 << 24), 65504}, "b": {127, -127}}
	got := map[string][]float32{}
	for name, tensor := range tensors {
		if got[name], err = tensor.Float32s(); err != nil {
			t.Error(err)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]int{2, 1}, tensors["f"].Shape); diff != "" {
		t.Error(diff)
	}
}

func TestInts(t *testing.T) {
	t.Parallel()
	tensors, err := safetensors.Parse(file(`{"m":{"dtype":"I64","shape":[2],"data_offsets":[0,16]}}`,
		3, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := tensors["m"].Ints(); err != nil || !cmp.Equal(got, []int{3, -1}) {
		t.Errorf("Ints = %v, %v", got, err)
	}
	if _, err := tensors["m"].Float32s(); err == nil {
		t.Error("integers were read as floating-point numbers")
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	for name, data := range map[string][]byte{
		"short":    {1, 2},
		"header":   file("{")[:8],
		"json":     file("{"),
		"offsets":  file(`{"a":{"dtype":"I8","shape":[2],"data_offsets":[0,2]}}`, 1),
		"negative": file(`{"a":{"dtype":"I8","shape":[2],"data_offsets":[-1,1]}}`, 1, 2),
		"shape":    file(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,2]}}`, 1, 2),
		"overflow": file(`{"a":{"dtype":"I8","shape":[4294967296,4294967296],"data_offsets":[0,2]}}`, 1, 2),
	} {
		if tensors, err := safetensors.Parse(data); err == nil {
			t.Errorf("%s: parsed as %v", name, tensors)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(file(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}`, 0, 0, 0x80, 0x3f))
	f.Add(file(`{"a":{"dtype":"I64","shape":[0,5],"data_offsets":[0,0]}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		tensors, err := safetensors.Parse(data)
		if err != nil {
			return
		}
		for name, tensor := range tensors {
			n := 1
			for _, size := range tensor.Shape {
				n *= size
			}
			if got, err := tensor.Float32s(); err == nil && len(got) != n {
				t.Errorf("%q: %d numbers for %v", name, len(got), tensor.Shape)
			}
			if got, err := tensor.Ints(); err == nil && len(got) != n {
				t.Errorf("%q: %d integers for %v", name, len(got), tensor.Shape)
			}
		}
	})
}
