package timex

import "palimpsest/internal/lex"

// generic reports whether a word of a question names no topic. Generic words, such
// as "discuss" and "happen", mean only that something was said or happened.
func generic(word string) bool {
	for _, term := range lex.Terms(word) {
		if !genericTerms[term] {
			return false
		}
	}
	return true
}

var genericTerms = func() set {
	s := set{}
	for _, term := range lex.Terms(genericWords) {
		s[term] = true
	}
	return s
}()

const genericWords = `
discuss discussed discussing discussion talk talked talking chat chatted chatting speak spoke spoken say said saying
tell told mention mentioned cover covered converse conversation session message messages exchange
happen happened happening occur occurred go went gone get got do did done
thing things stuff sort sorts kind kinds type types topic topics subject subjects matter matters
everything anything something list show give summarize summarise summarized summary recap overview review outline
remind remember recall recollect please share shared bring brought come came up touch touched on hey hi thanks
know knew let us lets also briefly exactly whole entire full all happen past
обсуждали обсудили обсуждать обсуждалось обсуждение говорили говорил говорила говорить говорилось разговаривали разговор
поговорили болтали беседовали беседа общались рассказывал рассказывала рассказал рассказала рассказать расскажи
сказал сказала сказали упоминал упоминала упоминали упомянул писал писала написал написала шла речь тема темы тем вещи
было была были происходило произошло случилось случалось делал делала делали делать сделал напомни напомнить вспомни помнишь
перечисли покажи подведи итог итоги резюме резюмируй подытожь сводка вкратце кратко пожалуйста все всё весь дай мне нам
скажи сообщение сообщения затрагивали мы я ты вы наш наша нашей наше нами тобой нас вас
`
