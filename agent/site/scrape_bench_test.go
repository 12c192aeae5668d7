package site

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// BenchmarkScrape is a scrape of all metrics while a run is open: how long it takes, how
// much it sends, and how long the controller's loop is held up by it.
func BenchmarkScrape(b *testing.B) {
	for _, hosts := range sizes() {
		b.Run(fmt.Sprintf("%d-hosts", hosts), func(b *testing.B) {
			s := openBench(b, b.TempDir())
			defer func() { _ = s.Close() }()
			configure(b, s, allAtOnce)
			f := settleFleet(b, s, benchNames(hosts), map[string]uint64{})
			defer f.close()
			f.gather(s)
			startRun(b, s)
			ended(b, s)
			handler := s.metrics.Handler(func(string) bool { return true })
			size := 0
			for b.Loop() {
				answer := httptest.NewRecorder()
				handler.ServeHTTP(answer, httptest.NewRequestWithContext(b.Context(), http.MethodGet, "/metrics", nil))
				text, err := io.ReadAll(answer.Body)
				if err != nil || answer.Code != http.StatusOK {
					b.Fatalf("a scrape is answered with %d: %v", answer.Code, err)
				}
				size = len(text)
			}
			begun := time.Now()
			const looks = 20
			for range looks {
				if _, err := s.tenants.controllers()[0].Figures(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(size), "B/scrape")
			b.ReportMetric(time.Since(begun).Seconds()/looks*1000, "ms-in-loop")
		})
	}
}
