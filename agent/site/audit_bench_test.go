package site

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/access"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/audit"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/principal"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/measure"
)

// BenchmarkAudit is what the audit log adds to a PUT of a calendar: how long it takes with it
// and without, in turns, and how many times as long, with one client and with 16 at once.
func BenchmarkAudit(b *testing.B) {
	for _, clients := range []int{1, 16} {
		b.Run(fmt.Sprintf("%d-clients", clients), func(b *testing.B) {
			s := openBench(b, b.TempDir())
			defer func() { _ = s.Close() }()
			token, err := s.Tokens.Add(principal.Token{Name: "bench", Tenant: benchTenant, Allow: access.Rights()})
			if err != nil {
				b.Fatal(err)
			}
			serve := func(logs *audit.Logs) *httptest.Server {
				return httptest.NewServer(api.New(api.Options{
					Site: "bench", Tenants: s.tenants, Store: s.store, Tokens: s.Tokens, Logins: s.Logins, Healthy: s.server.Healthy, Audit: logs, Log: s.log,
				}))
			}
			with, without := serve(s.audit), serve(nil)
			defer with.Close()
			defer without.Close()
			put := func(at *httptest.Server, client, i int) {
				url := fmt.Sprintf("%s/v1/config/os-upgrade/calendars/c%d", at.URL, client)
				body := fmt.Sprintf(`{"kind":"freeze","events":[{"start":"2026-12-24","all-day":true,"summary":"%d"}]}`, i)
				request, err := http.NewRequestWithContext(b.Context(), http.MethodPut, url, strings.NewReader(body))
				if err != nil {
					b.Error(err)
					return
				}
				request.Header.Set("Authorization", "Bearer "+token)
				answer, err := http.DefaultClient.Do(request)
				if err != nil {
					b.Error(err)
					return
				}
				text, _ := io.ReadAll(answer.Body)
				_ = answer.Body.Close()
				if answer.StatusCode/100 != 2 {
					b.Errorf("answered %d %s", answer.StatusCode, text)
				}
			}
			took := map[*httptest.Server]time.Duration{}
			for i := 0; b.Loop(); i++ {
				for _, at := range []*httptest.Server{with, without} {
					begun := time.Now()
					var all sync.WaitGroup
					for client := range clients {
						all.Go(func() { put(at, client, i) })
					}
					all.Wait()
					took[at] += time.Since(begun)
				}
			}
			each := float64(b.N * clients)
			b.ReportMetric(took[with].Seconds()*1000/each, "ms/PUT-with")
			b.ReportMetric(took[without].Seconds()*1000/each, "ms/PUT-without")
			b.ReportMetric(took[with].Seconds()/took[without].Seconds(), "ratio")
			measure.SyncedWrite(b, 512)
		})
	}
}
