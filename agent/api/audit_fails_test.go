package api

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/access"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/audit"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/principal"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/credentialtest"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// TestAuditFails checks what is answered when the audit log cannot be written: nothing is
// done if that is known before, and what is done is not answered as done. Each has its
// record once it can be written again, also what a handler has left with a panic.
func TestAuditFails(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	logs := audit.Open(dir)
	t.Cleanup(func() { _ = logs.Close() })
	tokens := principal.NewTokens(&credentialtest.Memory{}, &credentialtest.Memory{})
	token, err := tokens.Add(principal.Token{Name: "test", Tenant: "acme", Allow: []string{access.Reads, access.Writes}})
	if err != nil {
		t.Fatal(err)
	}
	m := &memory{}
	bare := New(Options{
		Site: "test", Tenants: Fixed{"acme": m}, Store: &m.memoryOf().intent, Tokens: tokens, Audit: logs,
		Healthy: func() error { return nil }, Log: slog.New(slog.DiscardHandler),
	})
	s := &served{T: t, token: token, handler: checked(t, bare), bare: bare}
	const path = "/v1/config/tenants/acme/os-upgrade/rollout"
	// A file in place of the folder: nothing can be written.
	folder, away := filepath.Join(dir, "acme"), filepath.Join(dir, "away")
	fail := func() {
		if err := errors.Join(logs.Close(), os.Rename(folder, away), os.WriteFile(folder, nil, 0o600)); err != nil {
			t.Error(err)
		}
	}
	repair := func() {
		if err := errors.Join(os.Remove(folder), os.Rename(away, folder)); err != nil {
			t.Error(err)
		}
	}
	s.want("PUT", path, `{"splay":"1s"}`, http.StatusCreated, "")
	m.intent.between = fail
	header := s.want("PUT", path, `{"splay":"2s"}`, http.StatusInternalServerError, "the request was answered with status 204, but that cannot be recorded")
	if header.Get("ETag") != "" || header.Get("Content-Type") != "application/json" {
		t.Errorf("it is answered with %v", header)
	}
	s.want("PUT", path, `{"splay":"3s"}`, http.StatusServiceUnavailable, "nothing was changed")
	s.want("GET", path, "", http.StatusOK, `"splay":"2s"`)
	s.want("PUT", path+"?validate=true", `{"splay":"4s"}`, http.StatusNoContent, "")
	repair()
	s.want("PUT", path, `{"splay":"5s"}`, http.StatusNoContent, "")
	m.intent.between = func() { panic(http.ErrAbortHandler) }
	func() {
		defer func() { _ = recover() }()
		s.want("PUT", path, `{"splay":"6s"}`, 0, "")
	}()
	s.want("PUT", path, `{"splay":"7s"}`, http.StatusNoContent, "")
	var all uint64
	read, err := logs.Read("acme", v1.AuditFilter{After: &all})
	if err != nil || len(read.Damage) > 0 {
		t.Fatalf("the audit log is %+v: %v", read, err)
	}
	var got []string
	for _, r := range read.Records {
		got = append(got, fmt.Sprint(r.Result, " ", r.Status))
	}
	if want := []string{"done 201", "unknown 0", "done 204", "unknown 0", "done 204"}; !slices.Equal(got, want) {
		t.Errorf("the records are %q, not %q", got, want)
	}
}
