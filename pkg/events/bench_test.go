package events

import "testing"

func BenchmarkDecodeEpisode(b *testing.B) {
	s := samples()[0]
	subject, head, body, err := Encode(s.meta, s.payload)
	if err != nil {
		b.Fatal(err)
	}
	raw := Raw{Subject: subject, Header: head, Body: body, Time: arrival()}
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		meta, data, err := Decode(raw)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := DecodeData[EpisodeRecorded](meta, data); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecodePlainEpisode(b *testing.B) {
	raw := episodeRaw(nil, hello)
	b.ReportAllocs()
	for b.Loop() {
		meta, data, err := Decode(raw)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := DecodeData[EpisodeRecorded](meta, data); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEncodeEpisode(b *testing.B) {
	s := samples()[0]
	b.ReportAllocs()
	for b.Loop() {
		if _, _, _, err := Encode(s.meta, s.payload); err != nil {
			b.Fatal(err)
		}
	}
}
