package llmtest

import (
	"cmp"
	"encoding/json"
	"net/http"
	"strings"

	"palimpsest/internal/llm"
)

// The formats of endpoints.
var (
	OpenAI    Wire = openAI{}
	Anthropic Wire = anthropic{}
	Gemini    Wire = gemini{}
)

type object = map[string]any

// written is v in JSON; the values here can all be written.
func written(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(raw)
}

type openAI struct{}

// Read implements [Wire].
func (openAI) Read(req *http.Request, body []byte) Asked {
	var in struct {
		Model    string `json:"model"`
		Messages []struct {
			Role    string `json:"role"`
			Content string `json:"content"`
		} `json:"messages"`
		ResponseFormat *struct {
			JSONSchema struct {
				Name string `json:"name"`
			} `json:"json_schema"`
		} `json:"response_format"`
		Tools []struct {
			Function struct {
				Name string `json:"name"`
			} `json:"function"`
		} `json:"tools"`
		MaxTokens           int `json:"max_tokens"`
		MaxCompletionTokens int `json:"max_completion_tokens"`
	}
	_ = json.Unmarshal(body, &in) // an unreadable request stays empty, and the test fails
	out := Asked{
		Key: cmp.Or(bearer(req), req.Header.Get("Api-Key")), Model: in.Model, Mode: llm.ModePlain,
		MaxTokens: in.MaxTokens + in.MaxCompletionTokens,
	}
	for _, m := range in.Messages {
		if m.Role == "system" {
			out.System += m.Content
		} else {
			out.User += m.Content
		}
	}
	switch {
	case in.ResponseFormat != nil:
		out.Mode, out.Name = llm.ModeSchema, in.ResponseFormat.JSONSchema.Name
	case len(in.Tools) > 0:
		out.Mode, out.Name = llm.ModeTool, in.Tools[0].Function.Name
	}
	return out
}

// Write implements [Wire].
func (openAI) Write(asked Asked, a Answer) string {
	message, finish := object{"role": "assistant", "content": a.Text, "refusal": nil}, "stop"
	switch {
	case a.Refuse:
		message["content"], message["refusal"] = nil, "I cannot help with that."
	case asked.Mode == llm.ModeTool && a.Text != "":
		message["content"], finish = nil, "tool_calls"
		message["tool_calls"] = []object{{"id": "call_1", "type": "function", "function": object{"name": asked.Name, "arguments": a.Text}}}
	}
	if a.Length {
		finish = "length"
	}
	return written(object{
		"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": asked.Model,
		"choices": []object{{"index": 0, "message": message, "finish_reason": finish}},
		"usage": object{
			"prompt_tokens": a.Input, "completion_tokens": a.Output, "total_tokens": a.Input + a.Output,
			"prompt_tokens_details": object{"cached_tokens": a.Cached},
		},
	})
}

type anthropic struct{}

// Read implements [Wire].
func (anthropic) Read(req *http.Request, body []byte) Asked {
	type text struct {
		Text string `json:"text"`
	}
	var in struct {
		Model    string `json:"model"`
		System   []text `json:"system"`
		Messages []struct {
			Content []text `json:"content"`
		} `json:"messages"`
		Tools []struct {
			Name string `json:"name"`
		} `json:"tools"`
		MaxTokens int `json:"max_tokens"`
	}
	_ = json.Unmarshal(body, &in) // as above
	out := Asked{Key: req.Header.Get("X-Api-Key"), Model: in.Model, Mode: llm.ModePlain, MaxTokens: in.MaxTokens}
	for _, s := range in.System {
		out.System += s.Text
	}
	for _, m := range in.Messages {
		for _, c := range m.Content {
			out.User += c.Text
		}
	}
	if len(in.Tools) > 0 {
		out.Mode, out.Name = llm.ModeTool, in.Tools[0].Name
	}
	return out
}

// Write implements [Wire]. A tool's arguments are an object in this format; a reply
// that is none comes as text, as when a model does not call the tool.
func (anthropic) Write(asked Asked, a Answer) string {
	content, stop := []object{{"type": "text", "text": a.Text}}, "end_turn"
	switch {
	case a.Refuse:
		content, stop = []object{}, "refusal"
	case a.Text == "":
		content = []object{}
	case asked.Mode == llm.ModeTool && json.Valid([]byte(a.Text)):
		content = append([]object{{"type": "text", "text": "I call the tool."}},
			object{"type": "tool_use", "id": "toolu_1", "name": asked.Name, "input": json.RawMessage(a.Text)})
		stop = "tool_use"
	}
	if a.Length {
		stop = "max_tokens"
	}
	return written(object{
		"id": "msg_1", "type": "message", "role": "assistant", "model": asked.Model, "content": content, "stop_reason": stop, "stop_sequence": nil,
		"usage": object{"input_tokens": a.Input - a.Cached, "cache_read_input_tokens": a.Cached, "cache_creation_input_tokens": 0, "output_tokens": a.Output},
	})
}

type gemini struct{}

// Read implements [Wire].
func (gemini) Read(req *http.Request, body []byte) Asked {
	type content struct {
		Parts []struct {
			Text string `json:"text"`
		} `json:"parts"`
	}
	var in struct {
		SystemInstruction content   `json:"systemInstruction"`
		Contents          []content `json:"contents"`
		GenerationConfig  struct {
			Schema    json.RawMessage `json:"responseJsonSchema"`
			MaxTokens int             `json:"maxOutputTokens"`
		} `json:"generationConfig"`
	}
	_ = json.Unmarshal(body, &in) // as above
	_, model, _ := strings.Cut(req.URL.Path, "/models/")
	out := Asked{
		Key: req.Header.Get("X-Goog-Api-Key"), Model: strings.TrimSuffix(model, ":generateContent"), Mode: llm.ModePlain,
		MaxTokens: in.GenerationConfig.MaxTokens,
	}
	for _, p := range in.SystemInstruction.Parts {
		out.System += p.Text
	}
	for _, c := range in.Contents {
		for _, p := range c.Parts {
			out.User += p.Text
		}
	}
	if in.GenerationConfig.Schema != nil {
		out.Mode = llm.ModeSchema
	}
	return out
}

// Write implements [Wire].
func (gemini) Write(_ Asked, a Answer) string {
	usage := object{"promptTokenCount": a.Input, "cachedContentTokenCount": a.Cached, "candidatesTokenCount": a.Output, "totalTokenCount": a.Input + a.Output}
	if a.Refuse {
		return written(object{"promptFeedback": object{"blockReason": "SAFETY"}, "usageMetadata": usage})
	}
	finish, parts := "STOP", []object{}
	if a.Length {
		finish = "MAX_TOKENS"
	}
	if a.Text != "" {
		parts = append(parts, object{"text": a.Text})
	}
	return written(object{
		"candidates":    []object{{"content": object{"role": "model", "parts": parts}, "finishReason": finish}},
		"usageMetadata": usage,
	})
}
