package static

import (
	"errors"
	"fmt"
	"math"

	"palimpsest/internal/embed/safetensors"
)

// table holds a vector for each token: a row of 8-bit numbers times a scale. A
// token beyond the table, and one of scale 0, has no vector.
type table struct {
	dimensions int
	rows       []byte    // two's complement, a row after the other
	of         []int     // token → row; nil where they are the same
	scales     []float32 // by token
	sketches   sketches  // by token
}

// readTable reads the tensors of a model2vec file: embeddings [rows,
// dimensions] of F64, F32, F16 or I8; weights [tokens], 1 without; mapping
// [tokens] to rows, the identity without.
func readTable(data []byte) (*table, error) {
	tensors, err := safetensors.Parse(data)
	if err != nil {
		return nil, err
	}
	embeddings := tensors["embeddings"]
	if len(embeddings.Shape) != 2 || embeddings.Shape[0] == 0 || embeddings.Shape[1] == 0 {
		return nil, fmt.Errorf("tensor embeddings has the shape %v, not rows and dimensions", embeddings.Shape)
	}
	rows, dimensions := embeddings.Shape[0], embeddings.Shape[1]
	t := &table{dimensions: dimensions, rows: embeddings.Data}
	scales := ones(rows)
	if embeddings.Type != "I8" {
		numbers, err := embeddings.Float32s()
		if err != nil {
			return nil, err
		}
		t.rows, scales = quantise(numbers, dimensions)
	}
	if mapping, ok := tensors["mapping"]; ok {
		if t.of, err = readMapping(mapping, rows); err != nil {
			return nil, err
		}
	}
	if t.scales, err = weigh(scales, t.of, tensors); err != nil {
		return nil, err
	}
	t.sketches = make(sketches, len(t.scales))
	return t, nil
}

func readMapping(mapping safetensors.Tensor, rows int) ([]int, error) {
	of, err := mapping.Ints()
	if err != nil {
		return nil, err
	}
	for token, row := range of {
		if row < 0 || row >= rows {
			return nil, fmt.Errorf("token %d has row %d of %d", token, row, rows)
		}
	}
	return of, nil
}

// weigh returns each token's weight times the scale of its row.
func weigh(scales []float32, of []int, tensors map[string]safetensors.Tensor) ([]float32, error) {
	tokens := len(scales)
	if of != nil {
		tokens = len(of)
	}
	weights := ones(tokens)
	if given, ok := tensors["weights"]; ok {
		var err error
		if weights, err = given.Float32s(); err != nil {
			return nil, err
		}
		if len(weights) != tokens {
			return nil, fmt.Errorf("%d weights of %d tokens", len(weights), tokens)
		}
	}
	for token, weight := range weights {
		row := token
		if of != nil {
			row = of[token]
		}
		scale := weight * scales[row]
		if math.IsNaN(float64(scale)) || math.IsInf(float64(scale), 0) {
			return nil, errors.New("weights are not finite")
		}
		weights[token] = scale
	}
	return weights, nil
}

// quantise returns the rows as 8-bit numbers, and the scale of each row. That
// moves a vector's direction by less than a thousandth.
func quantise(numbers []float32, dimensions int) (rows []byte, scales []float32) {
	rows, scales = make([]byte, len(numbers)), make([]float32, len(numbers)/dimensions)
	for i := range scales {
		row := numbers[i*dimensions:][:dimensions]
		var largest float32
		for _, x := range row {
			largest = max(largest, x, -x)
		}
		if scales[i] = largest / math.MaxInt8; scales[i] == 0 {
			continue
		}
		for j, x := range row {
			rows[i*dimensions+j] = byte(int8(math.RoundToEven(float64(x / scales[i]))))
		}
	}
	return rows, scales
}

func ones(n int) []float32 {
	all := make([]float32, n)
	for i := range all {
		all[i] = 1
	}
	return all
}

// add adds the vector of a token to v.
func (t *table) add(v []float32, token int32) {
	if int(token) >= len(t.scales) || t.scales[token] == 0 {
		return
	}
	scale, row := t.scales[token], int(token)
	if t.of != nil {
		row = t.of[row]
	}
	numbers := t.rows[row*t.dimensions:][:len(v)]
	for i := range v {
		// The conversion keeps processors with a fused multiply-add from rounding
		// otherwise than those without.
		v[i] += float32(scale * float32(int8(numbers[i])))
	}
}
