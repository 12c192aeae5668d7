package site

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/durable"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// TestLocal checks that a command on the machine reaches the API without a token, of a site
// that runs and of one that does not, which then cannot be started or changed by another; and
// that the record has the user of whom the kernel knows, whoever the client says that it is.
func TestLocal(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "site")
	s := openTwo(t, dir)
	ask := func(local *Local, method, path string) int {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, "http://site"+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Osu-Typed-By", "eve")
		w, err := local.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = w.Body.Close()
		return w.StatusCode
	}
	reach := func(stopped bool) *Local {
		t.Helper()
		local, err := OpenLocal(t.Context(), LocalOptions{Dir: dir, Holder: "a test", Log: slog.New(slog.DiscardHandler)})
		if err != nil || local.Stopped != stopped {
			t.Fatalf("the site is reached as %+v, %v; it should be stopped: %t", local, err, stopped)
		}
		if got := ask(local, http.MethodGet, "/v1/state/tenants/*/strongbox/credentials"); got != http.StatusOK {
			t.Errorf("the list of credentials is answered %d", got)
		}
		return local
	}
	if info, err := os.Stat(filepath.Join(storeFolder(dir), socketName)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the socket is %v, %v", info.Mode(), err)
	}
	local := reach(false)
	if got := ask(local, http.MethodDelete, "/v1/state/tenants/*/strongbox/credentials/none"); got != http.StatusNotFound {
		t.Errorf("a credential that is not there is answered %d", got)
	}
	if err := local.Record(t.Context(), v1.AuditRecord{Action: "backup", Object: "site"}, false); err != nil {
		t.Error(err)
	}
	if err := local.Record(t.Context(), v1.AuditRecord{By: "eve", Action: "backup", Object: "site"}, false); err != nil {
		t.Error(err)
	}
	read, err := s.audit.Read("*", v1.AuditFilter{})
	if err != nil || len(read.Records) != 3 {
		t.Fatalf("the records are %+v, %v", read, err)
	}
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range read.Records {
		if r.By != me.Username || r.As != v1.AuditMachine || r.From != v1.AuditLocal || r.Request != "" {
			t.Errorf("a record is %+v", r)
		}
	}
	if err := local.Close(); err != nil {
		t.Error(err)
	}
	closeSite(t, s)

	local = reach(true)
	if got := ask(local, http.MethodGet, "/v1/state/tenants/acme/os-upgrade"); got != http.StatusServiceUnavailable && got != http.StatusNotFound {
		t.Errorf("the state of a site that does not run is answered %d", got)
	}
	if _, err := durable.LockFolder(lockFile(dir), "another"); err == nil {
		t.Error("another process could lock the folder")
	}
	if err := local.Record(t.Context(), v1.AuditRecord{By: "eve", Action: "backup", Object: "site"}, false); err != nil {
		t.Error(err)
	}
	if err := local.Close(); err != nil {
		t.Error(err)
	}
	if got := auditOf(t, dir, "*"); !strings.HasSuffix(got, me.Username+" backup site done") {
		t.Errorf("the records are %s", got)
	}
}

// TestLocalOfAFirstStart checks that a command waits for a process which has the folder of a site
// that is not complete, and names it where it waits in vain.
func TestLocalOfAFirstStart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Mkdir(storeFolder(dir), 0o700); err != nil {
		t.Fatal(err)
	}
	lock, err := durable.LockFolder(lockFile(dir), "osupgrade-agent serve")
	if err != nil {
		t.Fatal(err)
	}
	looks := 0
	open := func(ctx context.Context, look func() error) error {
		local, err := OpenLocal(ctx, LocalOptions{Dir: dir, Holder: "a test", Log: slog.New(slog.DiscardHandler), Prepare: look})
		if err == nil {
			err = local.Close()
		}
		return err
	}
	incomplete := errors.New("it is not complete")
	err = open(t.Context(), func() error {
		if looks++; looks < 3 {
			return incomplete
		}
		return lock.Close()
	})
	if err != nil || looks != 3 {
		t.Errorf("after %d looks: %v", looks, err)
	}
	if lock, err = durable.LockFolder(lockFile(dir), "osupgrade-agent serve"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	err = open(ctx, func() error {
		cancel()
		return incomplete
	})
	if err == nil || !strings.Contains(err.Error(), "is starting (process") || !strings.Contains(err.Error(), "(osupgrade-agent serve)); try again in a moment") {
		t.Errorf("while it is not complete: %v", err)
	}
	if err := lock.Close(); err != nil {
		t.Error(err)
	}
	if err := open(t.Context(), func() error { return incomplete }); !errors.Is(err, incomplete) {
		t.Errorf("where no process has the folder: %v", err)
	}
}

// TestOthersAreNotOnTheMachine checks that only a connection of the socket proves anything:
// what comes any other way needs a token.
func TestOthersAreNotOnTheMachine(t *testing.T) {
	t.Parallel()
	s := openTwo(t, filepath.Join(t.TempDir(), "site"))
	defer closeSite(t, s)
	r, err := http.NewRequestWithContext(context.Background(), http.MethodGet, "http://"+s.Address()+"/v1/state/tenants/*/strongbox/credentials", nil)
	if err != nil {
		t.Fatal(err)
	}
	w, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = w.Body.Close()
	if w.StatusCode != http.StatusUnauthorized {
		t.Errorf("a request over the network is answered %d", w.StatusCode)
	}
}
