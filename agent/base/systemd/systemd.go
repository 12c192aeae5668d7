// Package systemd tells the service manager how the program does: that it is ready,
// what it does, and that it has not hung (sd_notify(3), sd_watchdog_enabled(3)).
//
// It decides nothing: what proves that the program has not hung is said by who asks.
package systemd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Service is this process as a service of type notify. The nil Service is a process
// that systemd does not run; it tells nobody.
type Service struct {
	address string
	// watchdog is the time after which systemd ends a process that says nothing; 0 if it
	// does not.
	watchdog time.Duration
}

// FromEnvironment returns the service that this process is; nil if it is none. What
// says so is removed from the environment: programs that are started from here must
// not speak for the service.
func FromEnvironment() *Service {
	address, usec, pid := os.Getenv("NOTIFY_SOCKET"), os.Getenv("WATCHDOG_USEC"), os.Getenv("WATCHDOG_PID")
	for _, name := range []string{"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"} {
		_ = os.Unsetenv(name) // It fails for no valid name.
	}
	if !strings.HasPrefix(address, "/") && !strings.HasPrefix(address, "@") {
		return nil
	}
	s := &Service{address: address}
	if n, err := strconv.ParseInt(usec, 10, 64); err == nil && n > 0 && (pid == "" || pid == strconv.Itoa(os.Getpid())) {
		s.watchdog = time.Duration(n) * time.Microsecond
	}
	return s
}

// defaultBeat is the time between two signs of life that nobody asked for.
const defaultBeat = time.Minute

// Beat is how often the program is to show that it has not hung: three times in the
// time that systemd waits.
func (s *Service) Beat() time.Duration {
	if s == nil || s.watchdog == 0 {
		return defaultBeat
	}
	return s.watchdog / 3
}

// Ready says that the program has started.
func (s *Service) Ready() error { return s.tell("READY=1") }

// Status says what it does.
func (s *Service) Status(text string) error {
	return s.tell("STATUS=" + strings.ReplaceAll(text, "\n", " "))
}

// Stopping says that it ends in order.
func (s *Service) Stopping() error { return s.tell("STOPPING=1") }

func (s *Service) tell(state string) error {
	if s == nil {
		return nil
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: s.address, Net: "unixgram"})
	if err != nil {
		return fmt.Errorf("cannot tell systemd %s: %w", state, err)
	}
	_, err = conn.Write([]byte(state))
	return errors.Join(err, conn.Close())
}

// Watch feeds the watchdog of systemd for as long as alive returns nil, until ctx ends.
// alive has until the end of its ctx, which is one beat. While it fails nothing is
// said, and systemd ends the process; hung is called with the reason then.
func (s *Service) Watch(ctx context.Context, alive func(ctx context.Context) error, hung func(error)) {
	if s == nil || s.watchdog == 0 {
		return
	}
	beats := time.NewTicker(s.Beat())
	defer beats.Stop()
	for {
		looking, cancel := context.WithTimeout(ctx, s.Beat())
		err := alive(looking)
		cancel()
		if err == nil {
			err = s.tell("WATCHDOG=1")
		}
		if err != nil && ctx.Err() == nil {
			hung(err)
		}
		select {
		case <-ctx.Done():
			return
		case <-beats.C:
		}
	}
}

// Files reports whether one of some files was replaced since it was made.
type Files struct {
	paths []string
	then  []fs.FileInfo
}

// NewFiles takes note of files as they are now.
func NewFiles(paths ...string) *Files {
	f := &Files{paths: paths}
	for _, path := range paths {
		info, _ := os.Stat(path) // None yet is a state, too.
		f.then = append(f.then, info)
	}
	return f
}

// Replaced returns which of the files was replaced; "" if none was. One that is gone
// was not: a package that is just being replaced comes back.
func (f *Files) Replaced() string {
	for i, path := range f.paths {
		now, err := os.Stat(path)
		then := f.then[i]
		if err != nil || then == nil {
			continue
		}
		if !os.SameFile(now, then) || !now.ModTime().Equal(then.ModTime()) || now.Size() != then.Size() {
			return path
		}
	}
	return ""
}

// Program is the file of this program.
func Program() (string, error) {
	path, err := os.Executable()
	if err != nil {
		return "", err
	}
	return filepath.Clean(path), nil
}
