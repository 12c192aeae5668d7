package site

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/audit"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/natsd"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// auditOf returns what the audit log of a tenant has, and what is damaged. No site runs in the
// folder.
func auditOf(t *testing.T, dir, tenant string) string {
	t.Helper()
	logs := OpenAudit(dir)
	defer func() { _ = logs.Close() }()
	return recordsOf(t, logs, tenant)
}

func recordsOf(t *testing.T, logs *audit.Logs, tenant string) string {
	t.Helper()
	var all uint64
	read, err := logs.Read(tenant, v1.AuditFilter{After: &all})
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, r := range read.Records {
		lines = append(lines, fmt.Sprintf("%s %s %s %s", r.By, r.Action, r.Object, r.Result))
	}
	for _, d := range read.Damage {
		lines = append(lines, d.Message)
	}
	return strings.Join(lines, ", ")
}

func note(t *testing.T, s *Site, by string) {
	t.Helper()
	if err := s.audit.Keep(v1.AuditRecord{Tenant: "acme", By: by, As: v1.AuditUser, Action: "write", Object: "config", Result: v1.AuditDone}); err != nil {
		t.Fatal(err)
	}
}

// TestAuditOfRestart checks what a site makes of its audit log at its start: what the
// process before had begun has a record, the end of a record that a power cut has left is
// dropped, and what was changed is told.
func TestAuditOfRestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := openTwo(t, dir)
	note(t, s, "ann")
	note(t, s, "bob")
	if _, err := s.audit.Begin(v1.AuditRecord{Tenant: "acme", By: "cid", As: v1.AuditUser, Action: "delete", Object: "rollout"}); err != nil {
		t.Fatal(err)
	}
	closeSite(t, s)
	path := filepath.Join(dir, auditFolder, "acme", "audit-0000000000000001.jsonl")
	body, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	body = append(bytes.Replace(body, []byte(`"ann"`), []byte(`"eve"`), 1), `{"format":1,"seq":3,"by":"d`...)
	if err := os.WriteFile(path, body, 0o600); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	s, err = Open(t.Context(), Options{
		Name: "test", Zone: time.UTC, Dir: dir, Tenants: []string{"acme", "beta"}, API: Endpoint{Listen: "127.0.0.1:0"},
		Holder: "a test", Log: slog.New(slog.NewTextHandler(&log, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	note(t, s, "dan")
	closeSite(t, s)
	if got, want := auditOf(t, dir, "acme"), "bob write config done, cid delete rollout unknown, dan write config done, record 1 was changed (line 1 of "+filepath.Base(path)+")"; got != want {
		t.Errorf("the audit log is %s,\nnot %s", got, want)
	}
	if !strings.Contains(log.String(), "ALARM: the audit log is not as it was written") || !strings.Contains(log.String(), "record 1 was changed") {
		t.Errorf("the site logs\n%s", &log)
	}
}

// TestAuditOfBackup checks that a backup has the audit logs, also one that is made while
// they are written, and that a restored site goes on with them.
func TestAuditOfBackup(t *testing.T) {
	t.Parallel()
	dir, again := t.TempDir(), filepath.Join(t.TempDir(), "again")
	s := openTwo(t, dir)
	note(t, s, "ann")
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				_ = s.audit.Keep(v1.AuditRecord{Tenant: "beta", By: "bob", Action: "write", Object: "config", Result: v1.AuditDone})
			}
		}
	}()
	file, logger := filepath.Join(t.TempDir(), "site.tar"), slog.New(slog.DiscardHandler)
	err := Backup(t.Context(), dir, file, logger)
	close(stop)
	<-stopped
	if err != nil {
		t.Fatal(err)
	}
	closeSite(t, s)
	var out bytes.Buffer
	if err := Restore(t.Context(), file, again, Secrets{}, DefaultSkip, &out, logger); err != nil {
		t.Fatal(err)
	}
	if got := auditOf(t, again, "beta"); strings.Contains(got, "record") || !strings.Contains(got, "bob write config done") {
		t.Errorf("the audit log of beta is %s", got)
	}
	s = openTwo(t, again)
	note(t, s, "cid")
	closeSite(t, s)
	if got := auditOf(t, again, "acme"); got != "ann write config done, cid write config done" {
		t.Errorf("the audit log of acme is %s", got)
	}
}

// TestAuditOfKeys checks that a key which a host has registered in place of its own has a
// record, that it is refused when it cannot have one, and that a host cannot fill the log.
func TestAuditOfKeys(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := openTwo(t, dir)
	rotated := s.rotated([]string{"acme"})
	registered := 0
	register := func() error { registered++; return nil }
	for range 30 {
		if err := rotated(natsd.Identity{Tenant: "acme", Host: "h01"}, "UKEY", register); err != nil {
			t.Fatal(err)
		}
	}
	if err := rotated(natsd.Identity{Tenant: "gone", Host: "h02"}, "UKEY", register); err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(recordsOf(t, s.audit, "acme"), "h01 rotate-key host/h01 done"); got != 20 || registered != 31 {
		t.Errorf("%d of 30 keys have a record, and %d of 31 are registered", got, registered)
	}
	if got := recordsOf(t, s.audit, "*"); got != "h02 rotate-key host/h02 done" {
		t.Errorf("the log of all tenants is %s", got)
	}
	closeSite(t, s)
	if err := os.RemoveAll(filepath.Join(dir, auditFolder)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, auditFolder), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := rotated(natsd.Identity{Tenant: "acme", Host: "h03"}, "UKEY", register); err == nil || registered != 31 {
		t.Errorf("a key that cannot be recorded is registered: %v", err)
	}
}
