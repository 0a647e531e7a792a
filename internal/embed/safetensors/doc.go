// Package safetensors reads files of named tensors: the length of a JSON header, the
// header, then the bytes of the tensors
// (https://huggingface.co/docs/safetensors, "Format").
package safetensors
