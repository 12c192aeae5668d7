package site

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/access"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/principal"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/measure"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// asker sends requests with a token.
type asker struct {
	b     *testing.B
	token string
	http  http.Client
}

// newAsker returns an asker with a token of an admin.
func newAsker(b *testing.B, s *Site) *asker {
	b.Helper()
	token, err := s.Tokens.Add(principal.Token{Name: "bench", Tenant: benchTenant, Allow: access.Rights()})
	if err != nil {
		b.Fatal(err)
	}
	return &asker{b: b, token: token, http: http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 100}}}
}

// get reads an address and returns how long the answer is.
func (a *asker) get(url string) int {
	a.b.Helper()
	request, err := http.NewRequestWithContext(a.b.Context(), http.MethodGet, url, nil)
	if err != nil {
		a.b.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+a.token)
	response, err := a.http.Do(request)
	if err != nil {
		a.b.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	n, err := io.Copy(io.Discard, response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		a.b.Fatalf("%s is answered %s, %v", url, response.Status, err)
	}
	return int(n)
}

// BenchmarkConfigGet compares reads of the configuration, over HTTP, with those of the same
// bytes from a handler that does nothing else: how many of the latter's requests in a second
// it answers.
func BenchmarkConfigGet(b *testing.B) {
	s := openBench(b, b.TempDir())
	defer func() { _ = s.Close() }()
	configure(b, s, v1.Rollout{})
	a := newAsker(b, s)
	url := "http://" + s.Address() + "/v1/config/os-upgrade"
	text := strings.Repeat("x", a.get(url))
	if !testing.Short() {
		time.Sleep(3 * time.Second) // A token that was just made is read from disk each time.
	}
	listener, err := (&net.ListenConfig{}).Listen(b.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	bare := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, text)
	})}
	go func() { _ = bare.Serve(listener) }()
	defer func() { _ = bare.Close() }()
	var ours, theirs time.Duration
	const batch = 200
	read := func(url string) time.Duration {
		begun := time.Now()
		for range batch {
			a.get(url)
		}
		return time.Since(begun)
	}
	for b.Loop() { // In turn, as the machine may be busy for a while.
		ours += read(url)
		theirs += read("http://" + listener.Addr().String())
	}
	b.ReportMetric(float64(theirs)/float64(ours), "of-bare")
	b.ReportMetric(float64(ours.Microseconds())/float64(b.N*batch), "µs/get")
	b.ReportMetric(float64(theirs.Microseconds())/float64(b.N*batch), "µs/bare")
	measure.RoundTrip(b, 200, len(text))
	b.ReportMetric(0, "ns/op")
}

// BenchmarkLists reads the hosts and the runs of a tenant over HTTP, as a whole and in parts.
func BenchmarkLists(b *testing.B) {
	for _, hosts := range sizes() {
		s := openBench(b, b.TempDir())
		configure(b, s, allAtOnce)
		f := settleFleet(b, s, benchNames(hosts), map[string]uint64{})
		f.gather(s)
		startRun(b, s)
		ended(b, s)
		a := newAsker(b, s)
		state := "http://" + s.Address() + "/v1/state/os-upgrade"
		for _, list := range []struct{ name, path string }{
			{"hosts", "/hosts"},
			{"hosts-by-name", "/hosts?fields=hostname"},
			{"hosts-count", "/hosts?count=true"},
			{"100-hosts", "/hosts?limit=100&after=h00500"},
			{"runs", "/runs"},
			{"one-run", "/runs?limit=1&fields=id,result"},
		} {
			b.Run(fmt.Sprintf("%d-hosts/%s", hosts, list.name), func(b *testing.B) {
				a.b = b
				size := 0
				for b.Loop() {
					size = a.get(state + list.path)
				}
				b.ReportMetric(float64(size), "B")
				measure.RoundTrip(b, 200, size)
			})
		}
		f.close()
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkFollowers is how long a change takes to reach the last of a thousand readers of the
// event stream, and how long others wait for an answer meanwhile.
func BenchmarkFollowers(b *testing.B) {
	readers := 1000
	if testing.Short() {
		readers = 20
	}
	s := openBench(b, b.TempDir())
	defer func() { _ = s.Close() }()
	configure(b, s, v1.Rollout{})
	a := newAsker(b, s)
	state := "http://" + s.Address() + "/v1/state/os-upgrade"
	ctx, stop := context.WithCancel(b.Context())
	told := make(chan struct{}, readers*1000)
	var all sync.WaitGroup
	for range readers {
		all.Go(func() { a.follow(ctx, state+"/events", told) })
	}
	b.Cleanup(func() { stop(); all.Wait() })
	for range readers { // The first event of each is what is now.
		<-told
	}
	time.Sleep(time.Second)
	for len(told) > 0 {
		<-told
	}
	var last time.Duration
	var others []time.Duration
	window := v1.MaintenanceWindow{DaysOfWeek: "Monday", Timezone: "UTC", Duration: "1h"}
	_, revision, err := s.Store().Config(b.Context(), benchTenant)
	if err != nil {
		b.Fatal(err)
	}
	for n := 0; b.Loop(); n++ {
		window.StartTime = fmt.Sprintf("%02d:%02d", n/60%24, n%60)
		begun := time.Now()
		config := v1.Kept[v1.OSUpgrade]{Value: v1.OSUpgrade{MaintenanceWindows: []v1.MaintenanceWindow{window}}}
		if revision, err = s.Store().PutConfig(b.Context(), benchTenant, config, revision); err != nil {
			b.Fatal(err)
		}
		for range 5 {
			asked := time.Now()
			a.get(state)
			others = append(others, time.Since(asked))
		}
		for range readers {
			<-told
		}
		last += time.Since(begun)
	}
	slices.Sort(others)
	b.ReportMetric(last.Seconds()/float64(b.N)*1000, "ms-to-last")
	b.ReportMetric(others[len(others)/2].Seconds()*1000, "ms-others")
	b.ReportMetric(others[len(others)*99/100].Seconds()*1000, "ms-others-p99")
	b.ReportMetric(0, "ns/op")
}

// follow reads an event stream, and tells of each event of the situation.
func (a *asker) follow(ctx context.Context, url string, told chan<- struct{}) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return
	}
	request.Header.Set("Authorization", "Bearer "+a.token)
	response, err := a.http.Do(request)
	if err != nil {
		return
	}
	defer func() { _ = response.Body.Close() }()
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		if lines.Text() == "event: situation" {
			told <- struct{}{}
		}
	}
}
