// Command chatbot is a chat that remembers. It publishes each message on NATS, reads
// the context over HTTP, and asks a model at any endpoint with OpenAI's chat
// completions.
//
//	palimpsest up
//	go run ./examples/chatbot -user nora -llm http://127.0.0.1:11434/v1 -model llama3.2
//
// chatbot.py does the same with the Python client of mem0.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"palimpsest/pkg/api"
	"palimpsest/pkg/client"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

func main() {
	server := flag.String("server", "http://127.0.0.1:8080", "address of Palimpsest")
	broker := flag.String("nats", "nats://127.0.0.1:4222", "address of its NATS")
	llm := flag.String("llm", "https://api.openai.com/v1", "endpoint of the model; its key is in OPENAI_API_KEY")
	model := flag.String("model", "gpt-4o-mini", "name of the model")
	user := flag.String("user", "me", "whose memory it is")
	session := flag.String("session", "chat", "name of the conversation")
	flag.Parse()
	who := scope.Scope{Project: scope.DefaultProject, User: *user, Agent: "chatbot", Session: *session}
	if err := run(context.Background(), *server, *broker, endpoint{*llm, *model}, who, os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "chatbot:", err)
		os.Exit(1)
	}
}

// run answers one line after the other.
func run(ctx context.Context, server, broker string, model endpoint, who scope.Scope, in io.Reader, out io.Writer) error {
	memory, err := client.New(server)
	if err != nil {
		return err
	}
	conn, err := nats.Connect(broker)
	if err != nil {
		return err
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		return err
	}
	chat := chat{memory: memory, js: js, model: model, who: who}
	for lines := bufio.NewScanner(in); lines.Scan(); {
		reply, err := chat.turn(ctx, lines.Text())
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintln(out, reply); err != nil {
			return err
		}
	}
	return nil
}

// chat is one conversation.
type chat struct {
	memory  *client.Client
	js      jetstream.JetStream
	model   endpoint
	who     scope.Scope
	history []message
}

// message is one message in the format of chat completions.
type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// turn answers one message of the user. Both are remembered.
func (c *chat) turn(ctx context.Context, text string) (string, error) {
	known, err := c.memory.Assemble(ctx, api.ContextQuery{Selector: api.Selector{User: &c.who.User}, Text: text, FirstTurn: c.history == nil})
	if err != nil {
		return "", err
	}
	if err := c.say(ctx, "user", text); err != nil {
		return "", err
	}
	system := message{"system", "You are a friendly assistant. What you know about the user:\n" + known.Context}
	reply, err := c.model.ask(ctx, append([]message{system}, c.history...))
	if err != nil {
		return "", err
	}
	return reply, c.say(ctx, "assistant", reply)
}

// say publishes a message. The acknowledgement means that it is stored; facts follow
// within milliseconds.
func (c *chat) say(ctx context.Context, role, content string) error {
	body, err := json.Marshal(message{role, content})
	if err != nil {
		return err
	}
	c.history = append(c.history, message{role, content})
	_, err = c.js.Publish(ctx, events.EpisodeSubject(c.who), body)
	return err
}

// endpoint is a model at an endpoint.
type endpoint struct{ url, name string }

func (m endpoint) ask(ctx context.Context, messages []message) (string, error) {
	body, err := json.Marshal(map[string]any{"model": m.name, "messages": messages})
	if err != nil {
		return "", err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, m.url+"/chat/completions", bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+os.Getenv("OPENAI_API_KEY"))
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = res.Body.Close() }()
	var answer struct {
		Choices []struct{ Message message }
	}
	if err := json.NewDecoder(res.Body).Decode(&answer); err != nil {
		return "", fmt.Errorf("ask the model: %s: %w", res.Status, err)
	}
	if len(answer.Choices) == 0 {
		return "", fmt.Errorf("ask the model: %s without a choice", res.Status)
	}
	return answer.Choices[0].Message.Content, nil
}
