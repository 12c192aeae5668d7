// Package port finds out which process of this machine has a port, for the error of
// who wanted it.
//
// It reads /proc and decides nothing.
package port

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// Explain adds to the error of listening on an address which process has it.
// Another error stays as it is.
func Explain(address string, err error) error { return explain("/proc", address, err) }

func explain(proc, address string, err error) error {
	// The embedded NATS server tells its errors as text.
	if err == nil || !errors.Is(err, syscall.EADDRINUSE) && !strings.Contains(err.Error(), syscall.EADDRINUSE.Error()) {
		return err
	}
	_, text, splitErr := net.SplitHostPort(address)
	number, numberErr := strconv.ParseUint(text, 10, 16)
	if splitErr != nil || numberErr != nil {
		return err
	}
	if holder := holderOf(proc, uint16(number)); holder != "" {
		return fmt.Errorf("%w; %s has port %d: stop it, or choose another port", err, holder, number)
	}
	return fmt.Errorf("%w; which process has port %[2]d is not visible to this user: sudo ss -ltnp 'sport = :%[2]d' shows it; stop it, or choose another port", err, number)
}

// holderOf returns the process that listens on a TCP port, such as "process 12
// (nomad)"; empty when that cannot be found out.
func holderOf(proc string, number uint16) string {
	sockets := map[string]bool{}
	for _, table := range []string{"tcp", "tcp6"} {
		text, err := os.ReadFile(filepath.Join(proc, "net", table))
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(text)) {
			if inode := listening(line, number); inode != "" {
				sockets["socket:["+inode+"]"] = true
			}
		}
	}
	if len(sockets) == 0 {
		return ""
	}
	processes, _ := filepath.Glob(filepath.Join(proc, "[0-9]*"))
	for _, dir := range processes {
		// A process that has ended meanwhile, or is another user's, is passed over.
		fds, _ := filepath.Glob(filepath.Join(dir, "fd", "*"))
		for _, fd := range fds {
			if target, err := os.Readlink(fd); err == nil && sockets[target] {
				return describe(dir)
			}
		}
	}
	return ""
}

// The columns of /proc/net/tcp (proc(5)).
const (
	columnLocal = 1
	columnState = 3
	columnInode = 9
	stateListen = "0A"
)

// listening returns the inode of a socket that listens on the port; empty for a line
// of another one.
func listening(line string, number uint16) string {
	columns := strings.Fields(line)
	if len(columns) <= columnInode || columns[columnState] != stateListen {
		return ""
	}
	_, local, _ := strings.Cut(columns[columnLocal], ":")
	if n, err := strconv.ParseUint(local, 16, 16); err != nil || uint16(n) != number {
		return ""
	}
	return columns[columnInode]
}

// describe names a process by its folder in /proc.
func describe(dir string) string {
	name, err := os.ReadFile(filepath.Join(dir, "comm"))
	if err != nil {
		return "process " + filepath.Base(dir)
	}
	return fmt.Sprintf("process %s (%s)", filepath.Base(dir), strings.TrimSpace(string(name)))
}
