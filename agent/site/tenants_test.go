package site

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
	"weak"

	natsstream "github.com/nats-io/nats.go/jetstream"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/credential"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/access"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/principal"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/tenant"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/natsd"
)

// TestTenantsAreBackedUp checks that a restored site serves the tenants that were made by
// the API, and not those that were removed.
func TestTenantsAreBackedUp(t *testing.T) {
	t.Parallel()
	dir, logger := filepath.Join(t.TempDir(), "old"), slog.New(slog.DiscardHandler)
	s := openTwo(t, dir)
	for _, name := range []string{"gamma", "delta"} {
		if _, err := s.tenants.Write(t.Context(), tenant.Tenant{Name: name}, false, credential.IfNew); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.tenants.Remove(t.Context(), "delta", "ann", nil); err != nil {
		t.Fatal(err)
	}
	file, restored := filepath.Join(t.TempDir(), "site.tar"), filepath.Join(t.TempDir(), "new")
	if err := Backup(t.Context(), dir, file, logger); err != nil {
		t.Fatal(err)
	}
	closeSite(t, s)
	if err := Restore(t.Context(), file, restored, Secrets{}, 10, new(bytes.Buffer), logger); err != nil {
		t.Fatal(err)
	}
	s = openTwo(t, restored)
	defer closeSite(t, s)
	for name, want := range map[string]bool{"acme": true, "gamma": true, "delta": false} {
		if _, served := s.tenants.Controller(name); served != want {
			t.Errorf("tenant %s is served: %t", name, served)
		}
	}
	if kept, err := Tenants(restored); err != nil || len(kept) != 4 {
		t.Errorf("there are the logs of %v, %v", kept, err)
	}
}

// TestRemovedTenantIsLetGo checks that nothing refers any more to what served a tenant that was
// removed.
func TestRemovedTenantIsLetGo(t *testing.T) {
	t.Parallel()
	s := openTwo(t, t.TempDir())
	defer closeSite(t, s)
	if _, err := s.tenants.Write(t.Context(), tenant.Tenant{Name: "gamma"}, false, credential.IfNew); err != nil {
		t.Fatal(err)
	}
	served := weak.Make(s.tenants.served["gamma"].parts.Load().Controller)
	if err := s.tenants.Remove(t.Context(), "gamma", "ann", nil); err != nil {
		t.Fatal(err)
	}
	for limit := time.Now().Add(30 * time.Second); served.Value() != nil; time.Sleep(10 * time.Millisecond) {
		if runtime.GC(); time.Now().After(limit) {
			t.Fatal("the controller of a removed tenant is still in memory")
		}
	}
}

// TestRemovalIsCompleted checks that what a crash has left of a removed tenant is withdrawn
// at the next start, before anybody is served.
func TestRemovalIsCompleted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := openTwo(t, dir)
	if _, err := s.tenants.Write(t.Context(), tenant.Tenant{Name: "gamma"}, false, credential.IfNew); err != nil {
		t.Fatal(err)
	}
	text, err := s.Tokens.Add(principal.Token{Name: "ci", Tenant: "gamma", Allow: access.Rights()})
	if err == nil {
		_, err = s.Logins.WriteUser(t.Context(), principal.User{Tenant: "gamma", Name: "ann", Allow: access.Rights()}, "correct horse", nil, time.Now())
	}
	if err == nil {
		_, err = s.Hosts.Add(natsd.Identity{Tenant: "gamma", Host: "h01"})
	}
	if err != nil {
		t.Fatal(err)
	}
	closeSite(t, s)
	// The process has ended right after the removal was on disk.
	objects, err := openTenants(dir)
	if err != nil {
		t.Fatal(err)
	}
	object, err := objects.Get("gamma")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	object.Removed = &now
	if _, err := objects.Put(object, nil); err != nil {
		t.Fatal(err)
	}
	s = openTwo(t, dir)
	defer closeSite(t, s)
	if _, served := s.tenants.Controller("gamma"); served {
		t.Error("the removed tenant is served")
	}
	if _, err := s.Tokens.Find(text, time.Now()); !errors.Is(err, principal.ErrUnknownToken) {
		t.Errorf("its token: %v", err)
	}
	users, err := s.Logins.Users.List()
	if err != nil || len(users) != 0 {
		t.Errorf("its users: %+v, %v", users, err)
	}
	keys, err := s.Hosts.List()
	if err != nil || len(keys) != 0 {
		t.Errorf("its hosts: %+v, %v", keys, err)
	}
}

// TestTenantsAtOnce makes and removes tenants from many sides while others ask for them and
// the site is then stopped: each request ends, and what was acknowledged is so after a restart.
func TestTenantsAtOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := openTwo(t, dir)
	var parts sync.WaitGroup
	for i := range 8 {
		name := fmt.Sprintf("t%d", i)
		parts.Go(func() {
			if _, err := s.tenants.Write(t.Context(), tenant.Tenant{Name: name}, false, credential.IfNew); err != nil {
				t.Error(err)
			}
			for range 3 {
				if err := s.Idle(t.Context()); err != nil {
					t.Logf("while tenants come and go: %v", err)
				}
			}
			if i%2 == 0 {
				if err := s.tenants.Remove(t.Context(), name, "ann", nil); err != nil {
					t.Error(err)
				}
			}
		})
		parts.Go(func() {
			if _, err := s.tenants.Write(t.Context(), tenant.Tenant{Name: "one"}, false, credential.IfNew); err != nil && !errors.Is(err, credential.ErrExists) {
				t.Error(err)
			}
		})
	}
	parts.Wait()
	closeSite(t, s)
	if _, err := s.tenants.Write(t.Context(), tenant.Tenant{Name: "late"}, false, credential.IfNew); !errors.Is(err, errClosing) {
		t.Errorf("a tenant is made after the site was stopped: %v", err)
	}
	s = openTwo(t, dir)
	defer closeSite(t, s)
	for i := range 8 {
		if _, served := s.tenants.Controller(fmt.Sprintf("t%d", i)); served != (i%2 == 1) {
			t.Errorf("tenant t%d is served: %t", i, served)
		}
	}
	if _, served := s.tenants.Controller("one"); !served {
		t.Error("the tenant that all wanted is not served")
	}
}

// TestTenantThatFails checks that a tenant whose controller cannot work holds up no other,
// and is served again once it can.
func TestTenantThatFails(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := openTwo(t, dir)
	defer func() { closeSite(t, s) }()
	hosts := hostsBucket(t, s)
	if _, err := hosts.PutString(t.Context(), "acme.h01", "{"); err != nil {
		t.Fatal(err)
	}
	closeSite(t, s)
	s = openTwo(t, dir)
	s.tenants.ready(t.Context(), "beta")
	if acme, beta := s.Controller("acme").Ready(t.Context()), s.Controller("beta").Ready(t.Context()); acme == nil || beta != nil {
		t.Errorf("acme, which cannot be served: %v; beta: %v", acme, beta)
	}
	if err := s.Alive(t.Context()); err != nil {
		t.Errorf("the site counts as hung: %v", err)
	}
	hosts = hostsBucket(t, s)
	if err := hosts.Delete(t.Context(), "acme.h01"); err != nil {
		t.Fatal(err)
	}
	for until := time.Now().Add(time.Minute); s.Controller("acme").Ready(t.Context()) != nil; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatal("acme is not served again")
		}
	}
	select {
	case err := <-s.Failed():
		t.Errorf("the site ends: %v", err)
	default:
	}
}

// TestNoTenantIsServed checks that a site which serves nobody any more ends.
func TestNoTenantIsServed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := openTwo(t, dir)
	defer func() { closeSite(t, s) }()
	hosts := hostsBucket(t, s)
	for _, key := range []string{"acme.h01", "beta.h01"} {
		if _, err := hosts.PutString(t.Context(), key, "{"); err != nil {
			t.Fatal(err)
		}
	}
	closeSite(t, s)
	s = openTwo(t, dir)
	select {
	case err := <-s.Failed():
		if !strings.Contains(err.Error(), "h01 is damaged") {
			t.Errorf("it ends because: %v", err)
		}
	case <-time.After(time.Minute):
		t.Error("it does not end")
	}
}

func hostsBucket(t *testing.T, s *Site) natsstream.KeyValue {
	t.Helper()
	nc, err := s.Server().Connect()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := natsstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	hosts, err := js.KeyValue(t.Context(), "osu-hosts")
	if err != nil {
		t.Fatal(err)
	}
	return hosts
}

// TestRestartWritesNoSettings checks that a site which starts again leaves the settings of its
// streams as they are: each write is synced, and a site may have many tenants.
func TestRestartWritesNoSettings(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var before map[string]os.FileInfo
	for range 2 {
		s := openTwo(t, dir)
		for name, c := range s.tenants.All() {
			if _, err := c.Current(t.Context()); err != nil {
				t.Fatalf("tenant %s: %v", name, err)
			}
		}
		closeSite(t, s)
		after := map[string]os.FileInfo{}
		err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
			if err == nil && entry.Name() == "meta.inf" {
				after[path], err = entry.Info()
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		for path, settings := range before {
			// The inode of a file that was replaced may be given to the new one.
			if now := after[path]; now == nil || !os.SameFile(settings, now) || !now.ModTime().Equal(settings.ModTime()) {
				t.Errorf("%s was written again", path)
			}
		}
		before = after
	}
	if len(before) < 10 {
		t.Errorf("there are the settings of %d streams", len(before))
	}
}
