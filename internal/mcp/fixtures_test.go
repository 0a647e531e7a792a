package mcp

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// A PNG of one pixel and a WAV without a sample.
var (
	onePixel = decoded("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==")
	silence  = decoded("UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA=")
)

func decoded(text string) []byte {
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		panic(err)
	}
	return raw
}

func textOf(format string, args ...any) sdk.Content {
	return &sdk.TextContent{Text: fmt.Sprintf(format, args...)}
}

func imageOf() sdk.Content { return &sdk.ImageContent{Data: onePixel, MIMEType: "image/png"} }

func embedded(uri, text string) sdk.Content {
	return &sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: uri, MIMEType: "text/plain", Text: text}}
}

// fixtures returns the server that the official conformance suite describes.
func fixtures() *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "fixtures", Version: "1"}, &sdk.ServerOptions{
		CompletionHandler: func(context.Context, *sdk.CompleteRequest) (*sdk.CompleteResult, error) {
			return &sdk.CompleteResult{Completion: sdk.CompletionResultDetails{Values: []string{}}}, nil
		},
		SubscribeHandler:   func(context.Context, *sdk.SubscribeRequest) error { return nil },
		UnsubscribeHandler: func(context.Context, *sdk.UnsubscribeRequest) error { return nil },
	})
	fixedTools(s)
	activeTools(s)
	fixtureResources(s)
	fixturePrompts(s)
	return s
}

type called func(context.Context, *sdk.CallToolRequest, object) ([]sdk.Content, error)

func tool(s *sdk.Server, name string, do called) {
	sdk.AddTool(s, &sdk.Tool{Name: name, Description: "A fixture."},
		func(ctx context.Context, req *sdk.CallToolRequest, in object) (*sdk.CallToolResult, any, error) {
			content, err := do(ctx, req, in)
			return &sdk.CallToolResult{Content: content}, nil, err
		})
}

// fixedTools always answer alike.
func fixedTools(s *sdk.Server) {
	for name, content := range map[string][]sdk.Content{
		"test_simple_text":       {textOf("This is a simple text response for testing.")},
		"test_image_content":     {imageOf()},
		"test_audio_content":     {&sdk.AudioContent{Data: silence, MIMEType: "audio/wav"}},
		"test_embedded_resource": {embedded("test://embedded-resource", "This is an embedded resource content.")},
		"test_multiple_content_types": {
			textOf("Multiple content types test:"), imageOf(), embedded("test://mixed-content-resource", "A text"),
		},
	} {
		tool(s, name, func(context.Context, *sdk.CallToolRequest, object) ([]sdk.Content, error) { return content, nil })
	}
	tool(s, "test_error_handling", func(context.Context, *sdk.CallToolRequest, object) ([]sdk.Content, error) {
		return nil, errors.New("this tool always fails")
	})
}

// activeTools send requests or notifications to the client during the call.
//
//nolint:staticcheck // the suite still tests logging and sampling
func activeTools(s *sdk.Server) {
	tool(s, "test_tool_with_logging", func(ctx context.Context, req *sdk.CallToolRequest, _ object) ([]sdk.Content, error) {
		for _, line := range []string{"started", "processing data", "completed"} {
			if err := req.Session.Log(ctx, &sdk.LoggingMessageParams{Level: "info", Data: "Tool " + line}); err != nil {
				return nil, err
			}
		}
		return []sdk.Content{textOf("logged")}, nil
	})
	tool(s, "test_tool_with_progress", func(ctx context.Context, req *sdk.CallToolRequest, _ object) ([]sdk.Content, error) {
		token := req.Params.GetProgressToken()
		for done := 0.; done <= 100; done += 50 {
			if err := req.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: token, Progress: done, Total: 100}); err != nil {
				return nil, err
			}
		}
		return []sdk.Content{textOf("%v", token)}, nil
	})
	tool(s, "test_sampling", func(ctx context.Context, req *sdk.CallToolRequest, in object) ([]sdk.Content, error) {
		prompt, _ := in["prompt"].(string)
		got, err := req.Session.CreateMessage(ctx, &sdk.CreateMessageParams{
			MaxTokens: 100, Messages: []*sdk.SamplingMessage{{Role: "user", Content: textOf("%s", prompt)}},
		})
		if err != nil {
			return nil, err
		}
		return []sdk.Content{textOf("LLM response: %v", got.Content)}, nil
	})
	for name, properties := range elicited {
		tool(s, name, func(ctx context.Context, req *sdk.CallToolRequest, _ object) ([]sdk.Content, error) {
			got, err := req.Session.Elicit(ctx, &sdk.ElicitParams{
				Message: "Please answer.", RequestedSchema: object{"type": "object", "properties": properties},
			})
			if err != nil {
				return nil, err
			}
			return []sdk.Content{textOf("action=%s, content=%v", got.Action, got.Content)}, nil
		})
	}
}

// titled are the values of an enumeration with titles.
var titled = []object{
	{"const": "value1", "title": "First Option"}, {"const": "value2", "title": "Second Option"}, {"const": "value3", "title": "Third Option"},
}

var options = []string{"option1", "option2", "option3"}

// elicited are the properties that a tool asks the user for, by its name.
var elicited = map[string]object{
	"test_elicitation": {"username": object{"type": "string", "description": "Your name"}},
	"test_elicitation_sep1034_defaults": {
		"name": object{"type": "string", "default": "John Doe"}, "age": object{"type": "integer", "default": 30},
		"score":    object{"type": "number", "default": 95.5},
		"status":   object{"type": "string", "enum": []string{"active", "inactive", "pending"}, "default": "active"},
		"verified": object{"type": "boolean", "default": true},
	},
	"test_elicitation_sep1330_enums": {
		"untitledSingle": object{"type": "string", "enum": options},
		"titledSingle":   object{"type": "string", "oneOf": titled},
		"legacyEnum": object{
			"type": "string", "enum": []string{"opt1", "opt2", "opt3"}, "enumNames": []string{"Option One", "Option Two", "Option Three"},
		},
		"untitledMulti": object{"type": "array", "minItems": 1, "maxItems": 3, "items": object{"type": "string", "enum": options}},
		"titledMulti":   object{"type": "array", "minItems": 1, "maxItems": 3, "items": object{"anyOf": titled}},
	},
}

func fixtureResources(s *sdk.Server) {
	read := func(mime, text string, blob []byte) sdk.ResourceHandler {
		return func(_ context.Context, req *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
			id := strings.TrimSuffix(strings.TrimPrefix(req.Params.URI, "test://template/"), "/data")
			return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{
				URI: req.Params.URI, MIMEType: mime, Text: strings.ReplaceAll(text, "{id}", id), Blob: blob,
			}}}, nil
		}
	}
	const plain, png = "text/plain", "image/png"
	s.AddResource(&sdk.Resource{URI: "test://static-text", Name: "text", MIMEType: plain}, read(plain, "A static text.", nil))
	s.AddResource(&sdk.Resource{URI: "test://static-binary", Name: "binary", MIMEType: png}, read(png, "", onePixel))
	s.AddResource(&sdk.Resource{URI: "test://watched-resource", Name: "watched", MIMEType: plain}, read(plain, "A watched text.", nil))
	s.AddResourceTemplate(&sdk.ResourceTemplate{URITemplate: "test://template/{id}/data", Name: "template", MIMEType: jsonType},
		read(jsonType, `{"id":"{id}","templateTest":true,"data":"Data for ID: {id}"}`, nil))
}

func fixturePrompts(s *sdk.Server) {
	prompt := func(name string, args []string, of func(given map[string]string) []sdk.Content) {
		p := &sdk.Prompt{Name: name, Description: "A fixture."}
		for _, arg := range args {
			p.Arguments = append(p.Arguments, &sdk.PromptArgument{Name: arg, Description: "A text.", Required: true})
		}
		s.AddPrompt(p, func(_ context.Context, req *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
			out := &sdk.GetPromptResult{}
			for _, content := range of(req.Params.Arguments) {
				out.Messages = append(out.Messages, &sdk.PromptMessage{Role: "user", Content: content})
			}
			return out, nil
		})
	}
	prompt("test_simple_prompt", nil, func(map[string]string) []sdk.Content {
		return []sdk.Content{textOf("This is a simple prompt for testing.")}
	})
	prompt("test_prompt_with_arguments", []string{"arg1", "arg2"}, func(given map[string]string) []sdk.Content {
		return []sdk.Content{textOf("Prompt with arguments: arg1='%s', arg2='%s'", given["arg1"], given["arg2"])}
	})
	prompt("test_prompt_with_embedded_resource", []string{"resourceUri"}, func(given map[string]string) []sdk.Content {
		return []sdk.Content{embedded(given["resourceUri"], "A text for testing."), textOf("Please process the resource.")}
	})
	prompt("test_prompt_with_image", nil, func(map[string]string) []sdk.Content {
		return []sdk.Content{imageOf(), textOf("Please look at the image.")}
	})
}
