// Package safetensors reads files of named tensors: a JSON header behind its
// length, then the bytes of the tensors
// (https://huggingface.co/docs/safetensors, "Format").
package safetensors
