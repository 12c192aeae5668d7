package port

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestExplainNamesThisProcess checks it on the real /proc: this process has the port.
func TestExplainNamesThisProcess(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"127.0.0.1:0", "[::1]:0"} {
		held, err := net.Listen("tcp", address) //nolint:noctx // it is at once
		if err != nil {
			t.Logf("not tested on %s: %v", address, err)
			continue
		}
		t.Cleanup(func() { _ = held.Close() })
		_, err = net.Listen("tcp", held.Addr().String()) //nolint:noctx // it fails at once
		got := Explain(held.Addr().String(), err)
		if !errors.Is(got, syscall.EADDRINUSE) || !strings.Contains(got.Error(), fmt.Sprintf("process %d (", os.Getpid())) {
			t.Errorf("%v", got)
		}
	}
}

func TestExplain(t *testing.T) {
	t.Parallel()
	proc := t.TempDir()
	file := func(path, text string) {
		path = filepath.Join(proc, path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	const head = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
	line := func(port, state, inode string) string {
		return "   0: 0100007F:" + port + " 00000000:0000 " + state + " 00000000:00000000 00:00000000 00000000     0        0 " + inode + " 1 0 100 0 0 10 0\n"
	}
	file("net/tcp", head+line("1226", "01", "70")+line("1227", "0A", "71")+line("1226", "0A", "72")+line("1228", "0A", "73"))
	file("net/tcp6", head)
	file("12/comm", "nomad\n")
	file("12/fd/none", "")
	for name, target := range map[string]string{"12/fd/3": "socket:[72]", "12/fd/4": "socket:[70]", "13/fd/1": "socket:[71]"} {
		file(filepath.Dir(name)+"/x", "")
		if err := os.Symlink(target, filepath.Join(proc, name)); err != nil {
			t.Fatal(err)
		}
	}
	used := fmt.Errorf("cannot listen: %w", syscall.EADDRINUSE)
	for address, want := range map[string]string{
		"127.0.0.1:4646": "cannot listen: address already in use; process 12 (nomad) has port 4646: stop it, or choose another port",
		"0.0.0.0:4647":   "process 13 has port 4647",
		"127.0.0.1:4648": "which process has port 4648 is not visible to this user: sudo ss -ltnp 'sport = :4648' shows it",
		"127.0.0.1:4649": "which process has port 4649 is not visible",
		"nonsense":       "cannot listen: address already in use",
	} {
		if got := explain(proc, address, used); !errors.Is(got, syscall.EADDRINUSE) || !strings.Contains(got.Error(), want) {
			t.Errorf("%s: %v; want %s", address, got, want)
		}
	}
	if got := explain(proc, "127.0.0.1:4646", errors.New(`Error listening on port: 127.0.0.1:4646, "bind: address already in use"`)); !strings.Contains(got.Error(), "nomad") {
		t.Errorf("of an error that is text: %v", got)
	}
	other := errors.New("permission denied")
	if got := explain(proc, "127.0.0.1:4646", other); !errors.Is(got, other) || got.Error() != other.Error() {
		t.Errorf("another error becomes %v", got)
	}
	if got := explain(proc, "127.0.0.1:4646", nil); got != nil {
		t.Errorf("no error becomes %v", got)
	}
}
