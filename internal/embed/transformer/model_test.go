package transformer

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// tiny is a model with random weights: small enough to be written for a test, and
// computed by reference.
type tiny struct {
	settings
	vocabulary []string
	tensors    map[string]tensor
}

type tensor struct {
	shape   []int
	numbers []float32
}

// newTiny has the characters of the suite's languages as its vocabulary, and some
// of its words. Its layers add little to the vectors of words, so that texts that share words are
// near each other, as with a real model.
func newTiny(hidden, heads int) *tiny {
	m := &tiny{vocabulary: []string{"[PAD]", "[UNK]", "[CLS]", "[SEP]"}, tensors: map[string]tensor{}}
	for _, r := range "abcdefghijklmnopqrstuvwxyz0123456789:.абвгдежзийклмнопрстуфхцчшщъыьэюя我在北京的大学学习历史他東タワーに登りたい高は" {
		m.vocabulary = append(m.vocabulary, string(r), "##"+string(r))
	}
	m.vocabulary = append(m.vocabulary, strings.Fields("museum sunday nine anna violin orchestra server disk space peanut allerg declared")...)
	m.settings = settings{
		ModelType: "bert", Hidden: hidden, Layers: 2, Heads: heads, Between: 40, Activation: "gelu", Positions: 64,
		Position: "absolute", Epsilon: 1e-6, Vocabulary: len(m.vocabulary), Types: 2,
	}
	random := rand.New(rand.NewPCG(1, 2))
	add := func(name string, mean, spread float64, shape ...int) {
		n := 1
		for _, size := range shape {
			n *= size
		}
		numbers := make([]float32, n)
		for i := range numbers {
			numbers[i] = float32(mean + spread*random.NormFloat64())
		}
		m.tensors[name] = tensor{shape, numbers}
	}
	dense := func(name string, in, out int) {
		add(name+".weight", 0, 0.1, out, in)
		add(name+".bias", 0, 0.02, out)
	}
	norm := func(name string) {
		add(name+".weight", 1, 0.1, hidden)
		add(name+".bias", 0, 0.02, hidden)
	}
	add("embeddings.word_embeddings.weight", 0, 1, m.Vocabulary, hidden)
	add("embeddings.position_embeddings.weight", 0, 0.1, m.Positions, hidden)
	add("embeddings.token_type_embeddings.weight", 0, 0.1, m.Types, hidden)
	norm("embeddings.LayerNorm")
	for i := range m.Layers {
		p := fmt.Sprintf("encoder.layer.%d.", i)
		for _, part := range []string{"attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense"} {
			dense(p+part, hidden, hidden)
		}
		norm(p + "attention.output.LayerNorm")
		dense(p+"intermediate.dense", hidden, m.Between)
		dense(p+"output.dense", m.Between, hidden)
		norm(p + "output.LayerNorm")
	}
	return m
}

// write makes a directory of the model, with 16-bit weights if half, and returns
// its path. files are added, or replace others; an empty one is left out.
func (m *tiny) write(t testing.TB, half bool, files map[string]string) string {
	t.Helper()
	config, err := json.Marshal(m.settings)
	if err != nil {
		t.Fatal(err)
	}
	vocab := map[string]int{}
	for id, token := range m.vocabulary {
		vocab[token] = id
	}
	var special []map[string]any
	for id, token := range m.vocabulary[:4] {
		special = append(special, map[string]any{"id": id, "content": token, "special": true})
	}
	tokenizer, err := json.Marshal(map[string]any{
		"added_tokens":  special,
		"normalizer":    map[string]any{"type": "BertNormalizer", "clean_text": true, "lowercase": true, "handle_chinese_chars": true},
		"pre_tokenizer": map[string]any{"type": "BertPreTokenizer"},
		"model":         map[string]any{"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "vocab": vocab},
	})
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{configFile: string(config), wordsFile: string(tokenizer), weightsFile: m.safetensors(t, half)}
	maps.Copy(all, files)
	dir := filepath.Join(t.TempDir(), "tiny")
	for name, data := range all {
		if data == "" {
			continue
		}
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func (m *tiny) safetensors(t testing.TB, half bool) string {
	t.Helper()
	header := map[string]any{"__metadata__": map[string]string{"format": "pt"}}
	var body []byte
	for _, name := range slices.Sorted(maps.Keys(m.tensors)) {
		begin, kind := len(body), "F32"
		for _, x := range m.tensors[name].numbers {
			if half {
				kind = "F16"
				body = binary.LittleEndian.AppendUint16(body, half16(x))
			} else {
				body = binary.LittleEndian.AppendUint32(body, math.Float32bits(x))
			}
		}
		header[name] = map[string]any{"dtype": kind, "shape": m.tensors[name].shape, "data_offsets": []int{begin, len(body)}}
	}
	text, err := json.Marshal(header)
	if err != nil {
		t.Fatal(err)
	}
	return string(binary.LittleEndian.AppendUint64(nil, uint64(len(text)))) + string(text) + string(body)
}

// half16 cuts a number to 16 bits; one too small for them is 0.
func half16(x float32) uint16 {
	bits := math.Float32bits(x)
	exponent := int(bits>>23&0xff) - 127 + 15
	if exponent <= 0 {
		return 0
	}
	return uint16(bits>>16&0x8000) | uint16(exponent<<10) | uint16(bits>>13&0x3ff)
}

// reference computes a text's vector in 64-bit floats, one number after the other,
// as the papers have it. Its tokens are words of the vocabulary and characters.
func (m *tiny) reference(text string, first bool) []float64 {
	ids := []int{2}
	for _, word := range strings.Fields(strings.ToLower(text)) {
		if id := slices.Index(m.vocabulary, word); id >= 0 {
			ids = append(ids, id)
			continue
		}
		for i, r := range []rune(word) {
			piece := string(r)
			if i > 0 {
				piece = "##" + piece
			}
			ids = append(ids, slices.Index(m.vocabulary, piece))
		}
	}
	ids = append(ids, 3)
	states := make([][]float64, len(ids))
	for i, id := range ids {
		states[i] = make([]float64, m.Hidden)
		for k := range states[i] {
			states[i][k] = m.at("embeddings.word_embeddings.weight", id*m.Hidden+k) +
				m.at("embeddings.position_embeddings.weight", i*m.Hidden+k) + m.at("embeddings.token_type_embeddings.weight", k)
		}
		states[i] = m.layerNorm("embeddings.LayerNorm", states[i])
	}
	for i := range m.Layers {
		states = m.layer(fmt.Sprintf("encoder.layer.%d.", i), states)
	}
	vector := make([]float64, m.Hidden)
	for i, state := range states {
		for k, x := range state {
			if i == 0 || !first {
				vector[k] += x
			}
		}
	}
	return unit(vector)
}

func (m *tiny) layer(p string, states [][]float64) [][]float64 {
	var queries, keys, values [][]float64
	for _, s := range states {
		queries = append(queries, m.dense(p+"attention.self.query", s))
		keys = append(keys, m.dense(p+"attention.self.key", s))
		values = append(values, m.dense(p+"attention.self.value", s))
	}
	out := make([][]float64, len(states))
	size := m.Hidden / m.Heads
	for i := range states {
		seen := make([]float64, m.Hidden)
		for from := 0; from < m.Hidden; from += size {
			var sum float64
			weights := make([]float64, len(states))
			for j := range states {
				for k := from; k < from+size; k++ {
					weights[j] += queries[i][k] * keys[j][k]
				}
				weights[j] = math.Exp(weights[j] / math.Sqrt(float64(size)))
				sum += weights[j]
			}
			for j := range states {
				for k := from; k < from+size; k++ {
					seen[k] += weights[j] / sum * values[j][k]
				}
			}
		}
		attended := m.layerNorm(p+"attention.output.LayerNorm", plus(states[i], m.dense(p+"attention.output.dense", seen)))
		raised := m.dense(p+"intermediate.dense", attended)
		for k, x := range raised {
			raised[k] = x * 0.5 * (1 + math.Erf(x/math.Sqrt2))
		}
		out[i] = m.layerNorm(p+"output.LayerNorm", plus(attended, m.dense(p+"output.dense", raised)))
	}
	return out
}

func (m *tiny) at(name string, i int) float64 { return float64(m.tensors[name].numbers[i]) }

func (m *tiny) dense(name string, x []float64) []float64 {
	out := make([]float64, m.tensors[name+".weight"].shape[0])
	for i := range out {
		out[i] = m.at(name+".bias", i)
		for k := range x {
			out[i] += x[k] * m.at(name+".weight", i*len(x)+k)
		}
	}
	return out
}

func (m *tiny) layerNorm(name string, x []float64) []float64 {
	var mean, variance float64
	for _, v := range x {
		mean += v / float64(len(x))
	}
	for _, v := range x {
		variance += (v - mean) * (v - mean) / float64(len(x))
	}
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = (v-mean)/math.Sqrt(variance+float64(m.Epsilon))*m.at(name+".weight", i) + m.at(name+".bias", i)
	}
	return out
}

func plus(a, b []float64) []float64 {
	sum := make([]float64, len(a))
	for i := range a {
		sum[i] = a[i] + b[i]
	}
	return sum
}

func unit(v []float64) []float64 {
	var sum float64
	for _, x := range v {
		sum += x * x
	}
	for i := range v {
		v[i] /= math.Sqrt(sum)
	}
	return v
}
