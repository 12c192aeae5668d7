package check

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/rollout"
)

// server answers requests with a list of statuses and then repeats the last one. It
// never answers a request with status 0.
type server struct {
	statuses []int
	asked    []string
	at       []time.Duration
	begin    time.Time
}

func (s *server) RoundTrip(request *http.Request) (*http.Response, error) {
	body := ""
	if request.Body != nil {
		data, err := io.ReadAll(request.Body)
		if err != nil {
			return nil, err
		}
		body = " " + string(data)
	}
	s.asked = append(s.asked, request.Method+" "+request.URL.String()+body)
	s.at = append(s.at, time.Since(s.begin))
	status := s.statuses[0]
	s.statuses = s.statuses[min(1, len(s.statuses)-1):]
	if status == 0 {
		<-request.Context().Done()
		return nil, request.Context().Err()
	}
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: http.NoBody, Request: request}, nil
}

func span(d time.Duration) rollout.Span { return rollout.SpanOf(d) }

// task is of host h01 in run 41.
func task(checks ...rollout.Check) message.Task {
	return message.Task{Run: 41, Kind: message.AfterHost, Host: "h01", Attempt: 2, Checks: checks}
}

// web is checked every 5 seconds for a minute.
func web(passes int) rollout.Check {
	return rollout.Check{Name: "web", Type: rollout.HTTP, URL: "http://web/", Passes: passes, Interval: span(5 * time.Second), Timeout: span(time.Minute)}
}

// check runs a task and checks its outcome.
func check(t *testing.T, r *Runner, task message.Task, want string) {
	t.Helper()
	got := r.Run(t.Context(), task)
	if got.Key() != task.Key() {
		t.Errorf("the outcome is of %v, want %v", got.Key(), task.Key())
	}
	if got.OK != (want == "") || got.Text != want {
		t.Errorf("the outcome is %v, %q; want %q", got.OK, got.Text, want)
	}
}

func TestPassesInARow(t *testing.T) {
	t.Parallel()
	zero := web(0)
	zero.Interval = ""
	zero.Timeout = span(time.Second)
	long := web(1)
	long.Interval = span(time.Minute)
	for name, row := range map[string]struct {
		check    rollout.Check
		statuses []int
		took     time.Duration
		want     string
	}{
		"at once":                  {web(1), []int{200}, 0, ""},
		"three in a row":           {web(3), []int{200}, 10 * time.Second, ""},
		"one after failures":       {web(1), []int{503, 503, 200}, 10 * time.Second, ""},
		"three after a setback":    {web(3), []int{200, 200, 500, 200}, 25 * time.Second, ""},
		"never":                    {web(3), []int{503}, 55 * time.Second, "check web: passed 0 of 3 times in a row within 1m0s, in 12 tries; the last failed try: status 503"},
		"every other time":         {web(2), []int{200, 500, 200, 500, 200, 500, 200, 500, 200, 500, 200, 404}, 55 * time.Second, "check web: passed 0 of 2 times in a row within 1m0s, in 12 tries; the last failed try: status 404"},
		"not often enough":         {web(20), []int{200}, 55 * time.Second, "check web: passed 12 of 20 times in a row within 1m0s, in 12 tries; no try failed"},
		"no time for a second try": {long, []int{503}, 0, "check web: passed 0 of 1 times in a row within 1m0s, in 1 try; the last failed try: status 503"},
		"no answer":                {web(1), []int{0}, 55 * time.Second, "check web: passed 0 of 1 times in a row within 1m0s, in 4 tries; the last failed try: it did not answer in time"},
		"a try is cut off": {
			web(1),
			[]int{500, 500, 500, 500, 500, 500, 500, 500, 500, 500, 503, 0},
			time.Minute,
			"check web: passed 0 of 1 times in a row within 1m0s, in 12 tries; the last failed try: status 503",
		},
		"no answer, then a good one":  {web(1), []int{0, 200}, 15 * time.Second, ""},
		"no passes and no interval":   {zero, []int{503}, 900 * time.Millisecond, "check web: passed 0 of 1 times in a row within 1s, in 10 tries; the last failed try: status 503"},
		"no passes, but it does well": {zero, []int{200}, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				check(t, &Runner{Transport: &server{statuses: row.statuses}}, task(row.check), row.want)
				if took := time.Since(begin); took != row.took {
					t.Errorf("it took %s, want %s", took, row.took)
				}
			})
		})
	}
}

func TestChecksEndAtTheFirstThatFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		first, second, third := web(1), web(1), web(1)
		first.URL, second.URL, third.URL = "http://1/", "http://2/", "http://3/"
		second.Interval = second.Timeout
		s := &server{statuses: []int{200, 500}}
		check(t, &Runner{Transport: s}, task(first, second, third),
			"check web: passed 0 of 1 times in a row within 1m0s, in 1 try; the last failed try: status 500")
		if got := strings.Join(s.asked, ", "); got != "GET http://1/, GET http://2/" {
			t.Errorf("asked were %s", got)
		}
	})
}

func TestATaskOfNothing(t *testing.T) {
	t.Parallel()
	check(t, &Runner{}, task(), "")
}

func TestInterrupted(t *testing.T) {
	t.Parallel()
	drain := message.Task{Run: 1, Kind: message.Drain, Host: "h01", Hook: &rollout.Hook{
		Type: rollout.HTTP, URL: "http://lb/", Timeout: span(time.Minute), Retries: new(100), RetryInterval: span(5 * time.Second),
	}}
	for name, row := range map[string]struct {
		task   message.Task
		status int
	}{
		"between two tries of a check": {task(web(1)), 503},
		"in a try of a check":          {task(web(1)), 0},
		"between two tries of a hook":  {drain, 503},
		"in a try of a hook":           {drain, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				ctx, stop := context.WithTimeout(t.Context(), 7*time.Second)
				defer stop()
				got := (&Runner{Transport: &server{statuses: []int{row.status}}}).Run(ctx, row.task)
				if got.OK || got.Text != "interrupted" || got.Key() != row.task.Key() {
					t.Errorf("the outcome is %+v", got)
				}
				if took := time.Since(begin); took != 7*time.Second {
					t.Errorf("it took %s", took)
				}
			})
		})
	}
}

// TestEachKindHasAProbe checks that what the API takes can be run.
func TestEachKindHasAProbe(t *testing.T) {
	t.Parallel()
	for _, kind := range rollout.CheckKinds {
		if probes[kind.Type] == nil {
			t.Errorf("checks of type %s have no probe", kind.Type)
		}
	}
	if len(probes) != len(rollout.CheckKinds) {
		t.Errorf("there are %d probes for %d types", len(probes), len(rollout.CheckKinds))
	}
}

func TestWhatIsUnknown(t *testing.T) {
	t.Parallel()
	check(t, &Runner{}, task(rollout.Check{Name: "x", Type: "ping", Timeout: span(time.Minute)}), `check x: the type "ping" is unknown to this agent; update it`)
	hook := message.Task{Run: 1, Kind: message.Undrain, Host: "h01", Hook: &rollout.Hook{Type: rollout.TCP}}
	check(t, &Runner{}, hook, `hook undrain: the type "tcp" is unknown to this agent; update it`)
}

func TestTheLogIsToldOfEachTryThatFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var lines strings.Builder
		r := &Runner{Transport: &server{statuses: []int{503, 200}}, Log: slog.New(slog.NewTextHandler(&lines, nil))}
		check(t, r, task(web(1)), "")
		if got := lines.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, `run=41 kind=after-host host=h01 what="check web" error="status 503"`) {
			t.Errorf("the log is %s", got)
		}
	})
}

var errBroken = errors.New("it is broken")

// TestChecksBeforeARun checks that all of them run, at once, and that the outcome says of each how
// it came out.
func TestChecksBeforeARun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		fleeting := func(name, url string) rollout.Check {
			return rollout.Check{Name: name, Type: rollout.HTTP, URL: url, Interval: span(5 * time.Second), Timeout: span(time.Minute)}
		}
		r := &Runner{Transport: answers{"http://up/": http.StatusOK, "http://down/": http.StatusBadGateway, "http://gone/": http.StatusGone}}
		of := message.Task{Run: 40, Kind: message.Start, Host: "h01", Checks: []rollout.Check{fleeting("a", "http://down/"), fleeting("b", "http://up/"), fleeting("c", "http://gone/")}}
		got := r.Run(t.Context(), of)
		down := "passed 0 of 1 times in a row within 1m0s, in 12 tries; the last failed try: status 502"
		gone := "passed 0 of 1 times in a row within 1m0s, in 12 tries; the last failed try: status 410"
		want := of.Outcome(false, "check a: "+down+"; check c: "+gone)
		want.Results = []message.Checked{{Text: down}, {OK: true}, {Text: gone}}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v, want %+v", got, want)
		}
		if took := time.Since(began); took > time.Minute {
			t.Errorf("it took %s", took)
		}
		of.Checks = of.Checks[1:2]
		if got := r.Run(t.Context(), of); !got.OK || !slices.Equal(got.Results, []message.Checked{{OK: true}}) {
			t.Errorf("one that passes comes to %+v", got)
		}
		ended, end := context.WithCancel(t.Context())
		end()
		if got := r.Run(ended, of); got.OK || len(got.Results) > 0 {
			t.Errorf("one that is interrupted comes to %+v", got)
		}
	})
}

// answers are the statuses of addresses.
type answers map[string]int

func (a answers) RoundTrip(request *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: a[request.URL.String()], Header: http.Header{}, Body: http.NoBody, Request: request}, nil
}
