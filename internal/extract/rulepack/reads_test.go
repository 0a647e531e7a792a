package rulepack

import (
	"strings"
	"testing"

	"palimpsest/internal/eval"
)

// TestReads: the languages of the packs are read, others are not, and a few words
// may be anything.
func TestReads(t *testing.T) {
	t.Parallel()
	x := shippedExtractor(t)
	for _, language := range []string{"en", "ru", "de", "fr", "es", "it", "pt"} {
		set, err := eval.LoadUtterances("testdata/corpus_" + language + ".jsonl")
		if err != nil {
			t.Fatal(err)
		}
		unread, of := 0, 0
		for i := 0; i+5 <= len(set); i += 5 {
			var texts []string
			for _, u := range set[i : i+5] {
				texts = append(texts, u.Text)
			}
			of++
			if !x.Reads(texts) {
				unread++
				for _, l := range x.languages {
					t.Logf("%s %.2f %q", l.name, l.share(strings.Fields(strings.ToLower(strings.Join(texts, " ")))), texts)
				}
			}
		}
		if unread*50 > of {
			t.Errorf("%s: %d of %d groups of five messages count as unread", language, unread, of)
		}
	}
	for language, text := range map[string]string{
		"Polish":     "Mieszkam w Krakowie i pracuję jako lekarz. Mam dwa koty i siostrę, która mieszka w Gdańsku. Lubię chodzić po górach, a w weekendy gram na gitarze.",
		"Dutch":      "Ik woon in Utrecht en werk als verpleegkundige. Mijn zus heet Anna en ze heeft twee katten. Ik hou van fietsen en op zondag bak ik brood.",
		"Swedish":    "Jag bor i Malmö och jobbar som lärare. Min syster heter Anna och hon har två katter. Jag tycker om att cykla och på söndagar bakar jag bröd.",
		"Turkish":    "İzmir'de yaşıyorum ve öğretmen olarak çalışıyorum. Kız kardeşimin adı Ayşe, iki kedisi var. Bisiklete binmeyi severim, pazar günleri ekmek yaparım.",
		"Czech":      "Bydlím v Brně a pracuji jako učitel. Moje sestra se jmenuje Anna a má dvě kočky. Rád jezdím na kole a v neděli peču chleba.",
		"Indonesian": "Saya tinggal di Bandung dan bekerja sebagai guru. Adik saya bernama Ani dan dia punya dua kucing. Saya suka bersepeda dan membuat roti.",
		"Japanese":   "私は大阪に住んでいて、教師として働いています。妹の名前は花子で、猫を二匹飼っています。日曜日にはパンを焼くのが好きです。",
		"Arabic":     "أعيش في القاهرة وأعمل مدرسًا. أختي اسمها ليلى ولديها قطتان. أحب ركوب الدراجة وأخبز الخبز يوم الجمعة مع أولادي في البيت.",
	} {
		for _, l := range x.languages {
			t.Logf("%s by %s: %.2f", language, l.name, l.share(strings.Fields(strings.ToLower(text))))
		}
		if x.Reads([]string{text}) {
			t.Errorf("%s counts as read", language)
		}
		if !x.Reads([]string{strings.Join(strings.Fields(text)[:1], " ")}) && len(strings.Fields(text)) > 3 {
			t.Errorf("one word of %s counts as unread", language)
		}
	}
}
