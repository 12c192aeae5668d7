package systemd

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"
)

// manager is the socket of systemd.
func manager(t *testing.T) (address string, told func() string) {
	t.Helper()
	address = filepath.Join(t.TempDir(), "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: address, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return address, func() string {
		t.Helper()
		text := make([]byte, 1000)
		if err := conn.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		n, err := conn.Read(text)
		if err != nil {
			t.Fatal(err)
		}
		return string(text[:n])
	}
}

// TestFromEnvironment checks when the process is a service, and that nothing of it is
// left for other programs.
func TestFromEnvironment(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", "") // It is put back after the test.
	for name, c := range map[string]struct {
		socket, usec, pid string
		service           bool
		watchdog          time.Duration
	}{
		"none":              {"", "", "", false, 0},
		"no address":        {"vsock:2:1234", "3000000", "", false, 0},
		"no watchdog":       {"/run/x", "", "", true, 0},
		"watchdog":          {"@x", "3000000", "", true, 3 * time.Second},
		"another's":         {"/run/x", "3000000", "1", true, 0},
		"damaged watchdog":  {"/run/x", "-3", "", true, 0},
		"damaged watchdog2": {"/run/x", "soon", "", true, 0},
	} {
		t.Setenv("NOTIFY_SOCKET", c.socket)
		t.Setenv("WATCHDOG_USEC", c.usec)
		t.Setenv("WATCHDOG_PID", c.pid)
		s := FromEnvironment()
		if (s != nil) != c.service || s != nil && s.watchdog != c.watchdog {
			t.Errorf("%s: it is %+v", name, s)
		}
		if _, left := os.LookupEnv("NOTIFY_SOCKET"); left {
			t.Errorf("%s: NOTIFY_SOCKET is left", name)
		}
	}
}

// TestTell checks what systemd is told, and that nobody is told nothing.
func TestTell(t *testing.T) {
	t.Parallel()
	address, told := manager(t)
	s := &Service{address: address}
	for _, row := range []struct {
		do   func(*Service) error
		want string
	}{
		{(*Service).Ready, "READY=1"},
		{func(s *Service) error { return s.Status("two\nlines") }, "STATUS=two lines"},
		{(*Service).Stopping, "STOPPING=1"},
	} {
		if err := errors.Join(row.do(s), row.do(nil)); err != nil {
			t.Error(err)
		}
		if got := told(); got != row.want {
			t.Errorf("it is told %q, not %q", got, row.want)
		}
	}
	if err := (&Service{address: address + "gone"}).Ready(); err == nil {
		t.Error("nobody is there, and it is told")
	}
}

// TestWatch checks that the watchdog is fed for as long as the program proves that it
// has not hung, and not any longer.
func TestWatch(t *testing.T) {
	t.Parallel()
	address, told := manager(t)
	s := &Service{address: address, watchdog: 30 * time.Millisecond}
	ctx, cancel := context.WithCancel(t.Context())
	var hangs atomic.Bool
	why := make(chan error, 100)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.Watch(ctx, func(ctx context.Context) error {
			if hangs.Load() {
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		}, func(err error) { why <- err })
	}()
	for range 3 {
		if got := told(); got != "WATCHDOG=1" {
			t.Errorf("it is told %q", got)
		}
	}
	hangs.Store(true)
	if err := <-why; !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("it hangs: %v", err)
	}
	cancel()
	<-ended
	(*Service)(nil).Watch(t.Context(), nil, nil) // It returns.
}

// TestReplaced checks which changes of a program count.
func TestReplaced(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	program, key := filepath.Join(dir, "program"), filepath.Join(dir, "key")
	write := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
	}
	write(program, "1")
	f := NewFiles(program, key)
	check := func(row, want string) {
		t.Helper()
		if got := f.Replaced(); got != want {
			t.Errorf("%s: replaced is %q, not %q", row, got, want)
		}
	}
	check("nothing happened", "")
	write(key, "1")
	check("a file that was not there is made", "")
	if err := os.Remove(program); err != nil {
		t.Fatal(err)
	}
	check("the program is removed", "")
	write(program, "2")
	check("the program is replaced", program)
	f = NewFiles(program, key)
	check("the new program runs", "")
	write(key, "2")
	check("the key is replaced", key)
}
