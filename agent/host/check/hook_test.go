package check

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/rollout"
)

// drain is a task of an http hook with 2 retries.
func drain() message.Task {
	return message.Task{Run: 41, Kind: message.Drain, Host: "h01", Attempt: 1, Hook: &rollout.Hook{
		Type: rollout.HTTP, URL: "http://lb/{host}", Timeout: span(time.Minute), Retries: new(2), RetryInterval: span(10 * time.Second),
	}}
}

func TestHookRetries(t *testing.T) {
	t.Parallel()
	const s = time.Second
	once := drain()
	once.Hook.Retries = new(0)
	for name, row := range map[string]struct {
		task     message.Task
		statuses []int
		at       []time.Duration
		want     string
	}{
		"at once":        {drain(), []int{204}, []time.Duration{0}, ""},
		"the last time":  {drain(), []int{500, 404, 299}, []time.Duration{0, 10 * s, 20 * s}, ""},
		"never":          {drain(), []int{500, 500, 404}, []time.Duration{0, 10 * s, 20 * s}, "hook drain: 3 tries failed; the last try: status 404"},
		"no retries":     {once, []int{500}, []time.Duration{0}, "hook drain: 1 try failed; the last try: status 500"},
		"no answer":      {drain(), []int{0}, []time.Duration{0, 70 * s, 140 * s}, "hook drain: 3 tries failed; the last try: it did not answer in time"},
		"an answer late": {drain(), []int{0, 200}, []time.Duration{0, 70 * s}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				server := &server{statuses: row.statuses, begin: time.Now()}
				check(t, &Runner{Transport: server}, row.task, row.want)
				if !slices.Equal(server.at, row.at) {
					t.Errorf("it was asked at %v, want %v", server.at, row.at)
				}
			})
		})
	}
}

func TestTheRequestOfAHook(t *testing.T) {
	t.Parallel()
	put := drain()
	put.Hook.Method = "PUT"
	named := drain()
	named.Hook.URL = "http://{host}:8080/drain?host={host}"
	odd := drain()
	odd.Host = "h 1/2"
	for name, row := range map[string]struct {
		task message.Task
		want string
	}{
		"POST by default":     {drain(), `POST http://lb/h01 {"host":"h01","run":41,"kind":"drain"}`},
		"another method":      {put, `PUT http://lb/h01 {"host":"h01","run":41,"kind":"drain"}`},
		"the host everywhere": {named, `POST http://h01:8080/drain?host=h01 {"host":"h01","run":41,"kind":"drain"}`},
		"the host is escaped": {odd, `POST http://lb/h%201%2F2 {"host":"h 1/2","run":41,"kind":"drain"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := &server{statuses: []int{200}}
			check(t, &Runner{Transport: server}, row.task, "")
			if !slices.Equal(server.asked, []string{row.want}) {
				t.Errorf("asked was %q, want %q", server.asked, row.want)
			}
		})
	}
}
