package client

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/fakeapi"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// hasty makes tests wait little; no test asserts how long.
var hasty = pace{waitMin: time.Millisecond, waitMax: 5 * time.Millisecond, idle: 45 * time.Second, login: 10 * time.Second}

var weekly = v1.OSUpgrade{
	WorkerApplications: []v1.WorkerApplication{{Name: "os-upgrade-debian"}},
	MaintenanceWindows: []v1.MaintenanceWindow{{DaysOfWeek: "Friday, Saturday", StartTime: "01:00", Timezone: "UTC", Duration: "4h"}},
}

var daily = v1.OSUpgrade{
	MaintenanceWindows: []v1.MaintenanceWindow{{DaysOfWeek: "Monday", StartTime: "02:00", Timezone: "UTC", Duration: "2h"}},
}

// aToken is what a client sends that needs none that is good.
const aToken = "osu_client-test-5f1d0c9b7e"

// connect makes a client of the fake API that waits little.
func connect(t *testing.T, api *fakeapi.Server, change ...func(*Options)) *Client {
	t.Helper()
	o := Options{Endpoint: api.URL, Token: api.Token, CACertPEM: api.CACertPEM, UserAgent: "client-test"}
	for _, c := range change {
		c(&o)
	}
	s, err := o.check()
	if err != nil {
		t.Fatal(err)
	}
	c := build(s, newTransport(s.tls), hasty)
	t.Cleanup(c.Close)
	return c
}

func retries(n int) func(*Options) { return func(o *Options) { o.Retries = n } }

// piped makes a client of handler over connections in memory, with the usual
// pace: in a synctest bubble time is free.
func piped(t *testing.T, handler http.HandlerFunc, change ...func(*Options)) *Client {
	t.Helper()
	o := Options{Endpoint: "http://127.0.0.1", Token: aToken}
	for _, c := range change {
		c(&o)
	}
	s, err := o.check()
	if err != nil {
		t.Fatal(err)
	}
	pipe := &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
	server := &http.Server{Handler: handler, ErrorLog: log.New(io.Discard, "", 0)}
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		_ = server.Serve(pipe) // Always ErrServerClosed.
	}()
	transport := newTransport(s.tls)
	transport.DialContext = pipe.dial
	c := build(s, transport, usualPace)
	t.Cleanup(func() {
		c.Close()
		_ = server.Close()
		<-stopped
	})
	return c
}

type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (l *pipeListener) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case l.conns <- there:
		return here, nil
	case <-l.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *pipeListener) Addr() net.Addr { return &net.IPAddr{} }

// wantError fails the test unless err is one whose text holds each part.
func wantError(t *testing.T, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("there is no error; want one with %q", parts)
	}
	for _, p := range parts {
		if !strings.Contains(err.Error(), p) {
			t.Errorf("error %q does not hold %q", err, p)
		}
	}
}

func wantEqual[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// spelled is a value as %+v shows it, to compare what holds pointers.
func spelled(v any) string { return fmt.Sprintf("%+v", v) }
