package site

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/principal"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// BenchmarkLogins is how much longer others wait for an answer while a hundred sources send
// 500 logins a second, most of them with a wrong password: more than the site hashes, so it
// refuses what is beyond its bounds. Meanwhile a source that has logged in before does so again.
func BenchmarkLogins(b *testing.B) {
	s := openBench(b, b.TempDir())
	defer func() { _ = s.Close() }()
	configure(b, s, v1.Rollout{})
	if _, err := s.Logins.WriteUser(b.Context(), principal.User{Tenant: benchTenant, Name: "ann", Allow: []string{"viewer"}}, "the right password", nil, time.Now()); err != nil {
		b.Fatal(err)
	}
	a := newAsker(b, s)
	url := "http://" + s.Address() + "/v1/config/os-upgrade"
	times := 1000
	if testing.Short() {
		times = 100
	}
	reads := func() (all []time.Duration) {
		for range times {
			begun := time.Now()
			a.get(url)
			all = append(all, time.Since(begun))
			time.Sleep(time.Millisecond) // As many as come, not as many as are answered.
		}
		slices.Sort(all)
		return all
	}
	l := logins{address: s.Address()}
	home := logins{address: s.Address()}
	home.login(b.Context(), http.DefaultClient, "the right password")
	var quiet, busy []time.Duration
	var atHome time.Duration
	for b.Loop() {
		quiet = append(quiet, reads()...)
		ctx, stop := context.WithCancel(b.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); l.send(ctx) }()
		time.Sleep(time.Second)
		begun := time.Now()
		for range homeLogins {
			home.login(b.Context(), http.DefaultClient, "the right password")
		}
		atHome += time.Since(begun)
		busy = append(busy, reads()...)
		stop()
		<-ended
	}
	if l.refused.Load() == 0 || l.other.Load() > 0 {
		b.Fatalf("of the logins %d are good, %d wrong, %d refused, and %d are answered otherwise", l.good.Load(), l.wrong.Load(), l.refused.Load(), l.other.Load())
	}
	slices.Sort(quiet)
	slices.Sort(busy)
	at := func(all []time.Duration, percent int) float64 { return all[len(all)*percent/100].Seconds() * 1000 }
	b.ReportMetric(at(quiet, 50), "ms-quiet")
	b.ReportMetric(at(quiet, 99), "ms-quiet-p99")
	b.ReportMetric(at(busy, 50)/at(quiet, 50), "x-median")
	b.ReportMetric(at(busy, 99)/at(quiet, 99), "x-p99")
	b.ReportMetric(float64(l.good.Load())/float64(b.N), "good")
	b.ReportMetric(float64(l.wrong.Load())/float64(b.N), "wrong")
	b.ReportMetric(float64(l.refused.Load())/float64(b.N), "refused")
	b.ReportMetric(float64(home.good.Load()-1)/float64(b.N), "good-at-home")
	b.ReportMetric(atHome.Seconds()*1000/float64(b.N*homeLogins), "ms-login-at-home")
	b.ReportMetric(0, "ns/op")
}

// homeLogins is how often the source that has logged in before does so again.
const homeLogins = 10

// logins send logins from many sources.
type logins struct {
	address                     string
	good, wrong, refused, other atomic.Int64
}

// send sends 500 logins a second until ctx ends.
func (l *logins) send(ctx context.Context) {
	var sources []*http.Client
	for source := range 100 {
		from := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 1, 0, byte(source+1))}}
		sources = append(sources, &http.Client{Transport: &http.Transport{DialContext: from.DialContext}})
	}
	var all sync.WaitGroup
	defer all.Wait()
	each := time.NewTicker(time.Second / 500)
	defer each.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-each.C:
			password := fmt.Sprint("wrong password ", n)
			if n%10 == 0 {
				password = "the right password"
			}
			all.Go(func() { l.login(ctx, sources[n%len(sources)], password) })
		}
	}
}

func (l *logins) login(ctx context.Context, from *http.Client, password string) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+l.address+"/v1/login",
		strings.NewReader(`{"tenant":"`+benchTenant+`","username":"ann","password":"`+password+`"}`))
	if err != nil {
		return
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := from.Do(request)
	if err != nil {
		return // It is the end of the benchmark.
	}
	defer func() { _ = response.Body.Close() }()
	_, _ = io.Copy(io.Discard, response.Body)
	switch status := response.StatusCode; {
	case status == http.StatusOK:
		l.good.Add(1)
	case status == http.StatusUnauthorized:
		l.wrong.Add(1)
	case (status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable) && response.Header.Get("Retry-After") != "":
		l.refused.Add(1)
	default:
		l.other.Add(1)
	}
}
