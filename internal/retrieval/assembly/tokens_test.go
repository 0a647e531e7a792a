package assembly

import (
	"testing"

	"github.com/tiktoken-go/tokenizer/codec"
)

// The estimate is not below the count of a vocabulary, so that a budget holds, and
// at most half above it.
func TestTokensEstimate(t *testing.T) {
	t.Parallel()
	vocabulary := codec.NewO200kBase()
	for _, text := range []string{
		"- Nora works as a hydrologist at Fenwick Labs. (2026-04-02)\n- Nora lives in Oslo with her two cats, Miso and Pixel.\n- She prefers tea.",
		"user: I moved from Lyon to Leeds in 2019, and I'm thinking about going back next spring!\nassistant: What would you miss most?",
		"- Пользователь живёт в Санкт-Петербурге и работает инженером.\n- Её дочь зовут Маша, ей семь лет, она любит рисовать.",
		"- Der Nutzer wohnt in Leipzig und arbeitet als Krankenpfleger.\n- Seine Telefonnummer ist +49 341 5550123.",
		"我喜欢吃苹果，昨天我去了北京。私は東京に住んでいます。",
	} {
		want, err := vocabulary.Count(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := Tokens(text); got < want || 2*got > 3*want {
			t.Errorf("%q: %d tokens, estimated %d", text, want, got)
		}
	}
	if got := Tokens("🦊🎉"); got < 2 {
		t.Errorf("emoji: %d", got)
	}
	if got := Tokens(""); got != 0 {
		t.Errorf("nothing: %d", got)
	}
}
