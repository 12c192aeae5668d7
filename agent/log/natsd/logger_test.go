package natsd

import (
	"bytes"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/throttle"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/credentialtest"
)

// notebook is a log to be read.
type notebook struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (n *notebook) Write(p []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.text.Write(p)
}

func (n *notebook) lines() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return strings.Split(strings.TrimSuffix(n.text.String(), "\n"), "\n")
}

func (n *notebook) log() *slog.Logger { return slog.New(slog.NewTextHandler(n, nil)) }

// TestLogFlood checks that of the lines that connections cause a few are
// written in a minute and the others counted, and that this hides no line of
// the server's own.
func TestLogFlood(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var n notebook
		l := newLogger(n.log())
		for i := range 1000 {
			l.Errorf("[2001:db8::1]:4222 - cid:%d - Publish Violation - %s", i, strings.Repeat("A", 3900))
		}
		l.Errorf("JetStream failed to store a msg")
		synctest.Wait()
		lines := n.lines()
		if last := lines[len(lines)-1]; len(lines) != fewLines+1 || !strings.Contains(last, "failed to store") {
			t.Errorf("%d lines, the last is %s", len(lines), last)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		lines = n.lines()
		if last := lines[len(lines)-1]; len(lines) != fewLines+2 || !strings.Contains(last, fmt.Sprintf("lines=%d", 1000-fewLines)) {
			t.Errorf("%d lines, the last is %s", len(lines), last)
		}
		for _, line := range lines {
			if len(line) > 2*maxForeign {
				t.Errorf("a line of %d bytes", len(line))
			}
		}
		l.Warnf("1.2.3.4:4222 - cid:7 - anew")
		if got := len(n.lines()); got != fewLines+3 {
			t.Errorf("%d lines", got)
		}
	})
}

// TestLoggedKey checks that a key of chance does not fill the log, however
// long it is and however often it comes.
func TestLoggedKey(t *testing.T) {
	t.Parallel()
	var n notebook
	dir := t.TempDir()
	hosts := NewHosts(&credentialtest.Memory{})
	s, err := Start(t.Context(), Options{Dir: filepath.Join(dir, "store"), Listen: "127.0.0.1:0", Hosts: hosts, Holder: "a test", Log: n.log()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	key, begun := strings.Repeat("U", 1500), time.Now()
	for range 100 {
		nc, err := nats.Connect("nats://"+s.Address(), nats.Nkey(key, func([]byte) ([]byte, error) { return nil, nil }))
		if err == nil {
			nc.Close()
			t.Fatal("it is let in")
		}
	}
	for _, line := range n.lines() {
		if len(line) > 3*maxForeign {
			t.Errorf("a line of %d bytes: %s", len(line), line)
		}
	}
	lines, took := n.lines(), time.Since(begun)
	if most := (2*fewLines + 2) * (1 + int(took/time.Minute)); len(lines) > most {
		t.Errorf("%d lines in %s", len(lines), took)
	}
}

// TestErrorsAreLogged checks that errors of the agent's own connections come
// to the log, and not all of them.
func TestErrorsAreLogged(t *testing.T) {
	t.Parallel()
	var n notebook
	dir := t.TempDir()
	hosts := NewHosts(&credentialtest.Memory{})
	s, err := Start(t.Context(), Options{Dir: filepath.Join(dir, "store"), Hosts: hosts, Holder: "a test", Log: n.log()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	nc, err := s.Receive("acme")
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	begun := time.Now()
	for range 100 {
		nc.Opts.AsyncErrorCB(nc, nil, net.ErrClosed)
	}
	lines, took := n.lines(), time.Since(begun)
	var about []string
	for _, line := range lines {
		if strings.Contains(line, "hosts of acme") {
			about = append(about, line)
		}
	}
	// In each span there is the first one, and how many more there were.
	if most := 1 + 2*int(took/errorsEach); len(about) < 1 || len(about) > most || !strings.Contains(about[0], net.ErrClosed.Error()) {
		t.Errorf("logged in %s is %q", took, about)
	}
}

// TestLogRepeats checks that what the server itself says again and again is
// written once in a while, and that this hides nothing else it says.
func TestLogRepeats(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var n notebook
		l := newLogger(n.log())
		for range 60 {
			for stream := range 3 {
				l.Errorf("JetStream failed to store a msg on stream %d", stream)
			}
			time.Sleep(time.Second)
		}
		if lines := n.lines(); len(lines) != 3 {
			t.Errorf("three streams fail to store: %q", lines)
		}
		time.Sleep(throttle.Again)
		synctest.Wait()
		for _, line := range n.lines()[3:] {
			if !strings.Contains(line, "held back") || !strings.Contains(line, "lines=59") {
				t.Errorf("after ten minutes: %s", line)
			}
		}
		l.Errorf("JetStream failed to store a msg on stream %d", 0)
		if lines := n.lines(); len(lines) != 3+3+1 {
			t.Errorf("one stream still fails to store: %q", lines)
		}
		for other := range 1000 {
			l.Errorf("other %d", other)
		}
		if lines := n.lines(); len(lines) != 3+3+1+1000 {
			t.Errorf("%d lines", len(lines))
		}
	})
}
