// Package llm is the contract of language models: requests, replies, and the
// errors that tell a limit from an outage and an outage from a bad reply. Providers are sibling folders over the official SDKs of OpenAI and Anthropic, and over HTTP for Gemini; llmtest is the
// suite that each must pass.
//
// A provider makes one call and retries nothing. [New] makes a model of it that
// asks for JSON in the best way its endpoint takes. [Items] reads replies.
package llm
