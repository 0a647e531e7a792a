package eval

// Figures are means over questions, each from 0 to 1.
type Figures struct {
	Questions int `json:"questions"`
	// First and Three are the shares of the questions with evidence at the first
	// place, and among the first three.
	First float64 `json:"first"`
	Three float64 `json:"first3"`
	// Recall5, Recall10 and Recall25 are the shares of the evidence among the
	// first 5, 10 and 25.
	Recall5  float64 `json:"recall@5"`
	Recall10 float64 `json:"recall@10"`
	Recall25 float64 `json:"recall@25"`
	// MRR is the mean of 1/rank of the first evidence; 0 from rank 101 on.
	MRR float64 `json:"mrr"`
	// RecallGold is the share of the evidence among as many as there are pieces of
	// it.
	RecallGold float64 `json:"recall@gold"`
}

// depth is how far MRR looks.
const depth = 100

// measure scores one ranking, best first. Of equal ids the first counts.
func measure(evidence, ranked []string) Figures {
	relevant := map[string]bool{}
	for _, id := range evidence {
		relevant[id] = true
	}
	f := Figures{Questions: 1}
	seen, found := map[string]bool{}, 0
	share := func() float64 { return float64(found) / float64(len(relevant)) }
	for _, id := range ranked {
		if seen[id] {
			continue
		}
		seen[id] = true
		rank := len(seen)
		if relevant[id] {
			if found++; found == 1 && rank <= depth {
				f.MRR, f.First, f.Three = 1/float64(rank), one(rank == 1), one(rank <= 3)
			}
		}
		for _, at := range []struct {
			rank   int
			recall *float64
		}{{5, &f.Recall5}, {10, &f.Recall10}, {25, &f.Recall25}, {len(relevant), &f.RecallGold}} {
			if rank <= at.rank {
				*at.recall = share()
			}
		}
	}
	return f
}

func one(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

func (f *Figures) add(g Figures) {
	f.Questions += g.Questions
	f.First += g.First
	f.Three += g.Three
	f.Recall5 += g.Recall5
	f.Recall10 += g.Recall10
	f.Recall25 += g.Recall25
	f.MRR += g.MRR
	f.RecallGold += g.RecallGold
}

func (f Figures) mean() Figures {
	n := float64(max(1, f.Questions))
	f.First /= n
	f.Three /= n
	f.Recall5 /= n
	f.Recall10 /= n
	f.Recall25 /= n
	f.MRR /= n
	f.RecallGold /= n
	return f
}
