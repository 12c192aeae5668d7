//go:build !worker

package cli

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/dial"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/access"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/principal"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/site"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/site/dev"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/tell/webhook"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// newsSite is a site with a news script that may connect to some local addresses, and returns
// how to call a command of it.
func newsSite(t *testing.T, local ...string) (do func(code int, args ...string) string) {
	t.Helper()
	scripts, dir := t.TempDir(), t.TempDir()
	for name, text := range map[string]string{"mail": "#!/bin/sh\nexit 0\n", "sms": "#!/bin/sh\necho out of credit\nexit 1\n"} {
		if err := os.WriteFile(filepath.Join(scripts, name), []byte(text), 0o700); err != nil { //nolint:gosec // they are scripts
			t.Fatal(err)
		}
	}
	allowed, err := dial.Parse(local)
	if err != nil {
		t.Fatal(err)
	}
	s, err := site.Open(t.Context(), site.Options{
		Name: "here", Zone: time.UTC, Dir: dir, Tenants: []string{"acme"}, NewsScripts: scripts, Local: allowed,
		API: site.Endpoint{Listen: "127.0.0.1:0"}, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	token, err := s.Tokens.Add(principal.Token{Name: "test", Tenant: "acme", Allow: access.Rights()})
	if err != nil {
		t.Fatal(err)
	}
	served := func() bool {
		code, _, _ := callWith(t, "", as(t, "http://"+s.Address(), token, "acme", "webhook", "list")...)
		return code == exitOK
	}
	for deadline := time.Now().Add(time.Minute); !served(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the webhooks of the tenant are not served")
		}
	}
	return func(code int, args ...string) string {
		t.Helper()
		got, stdout, stderr := callWith(t, "", as(t, "http://"+s.Address(), token, "acme", args...)...)
		if got != code {
			t.Fatalf("%q: exit code %d:\n%s%s", args, got, stdout, stderr)
		}
		return stdout + stderr
	}
}

// contains checks what a command has printed.
func contains(t *testing.T, got string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(got, part) {
			t.Errorf("no %q in\n%s", part, got)
		}
	}
}

// TestWebhookToTheSite checks that a webhook reaches a program on the site's machine only if the
// site allows its address, and that otherwise nobody learns what listens there.
func TestWebhookToTheSite(t *testing.T) {
	t.Parallel()
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
	t.Cleanup(receiver.Close)
	address := strings.TrimPrefix(receiver.URL, "http://")
	refused := newsSite(t)
	for _, at := range []string{address, "127.0.0.1:1"} {
		refused(exitOK, "webhook", "add", "here", "--url", "http://"+at)
		contains(t, refused(exitFailed, "webhook", "test", "here"), "webhook here: the test was not accepted: the site does not connect to "+at+
			", which is an address of its own machine, link-local, or one at which a cloud serves credentials; an administrator of the site can allow it with osupgrade-agent serve --allow-local "+at)
	}
	allowed := newsSite(t, address)
	allowed(exitOK, "webhook", "add", "here", "--url", receiver.URL)
	contains(t, allowed(exitFailed, "webhook", "test", "here"), "the receiver answered 418")
}

// TestWebhookCommands takes a webhook through its life by commands: its secret is printed
// once, kept by a change, and replaced on request; a test says what came of it.
func TestWebhookCommands(t *testing.T) {
	t.Parallel()
	do := newsSite(t, dial.Any)
	var key atomic.Pointer[[]byte]
	var mu sync.Mutex
	status := http.StatusNoContent
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		if webhook.Verify(*key.Load(), r.Header, body, time.Now()) != nil {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		w.WriteHeader(status)
	}))
	t.Cleanup(receiver.Close)
	secret := regexp.MustCompile(`whsec_\S+`)
	learn := func(printed string) {
		t.Helper()
		k, err := v1.WebhookKey(secret.FindString(printed))
		if err != nil {
			t.Fatalf("%v in\n%s", err, printed)
		}
		key.Store(&k)
	}
	added := do(exitOK, "webhook", "add", "chat", "--url", receiver.URL+"/x", "--news", "run.finished,host.failed")
	contains(t, added, "Webhook chat of tenant acme is added.", "which is not shown again", "To try it: osupgrade-agent webhook test chat")
	learn(added)
	contains(t, do(exitOK, "webhook", "test", "chat"), "The receiver of webhook chat has accepted test msg_test_")
	contains(t, do(exitOK, "webhook", "list"), "chat", "delivering", "host.failed,run.finished", receiver.URL+"/x")
	if changed := do(exitOK, "webhook", "add", "chat", "--url", receiver.URL); strings.Contains(changed, "whsec_") || !strings.Contains(changed, "is changed") {
		t.Errorf("a change prints\n%s", changed)
	}
	contains(t, do(exitOK, "webhook", "test", "chat"), "has accepted")
	replaced := do(exitOK, "webhook", "add", "chat", "--url", receiver.URL, "--new-secret")
	contains(t, do(exitFailed, "webhook", "test", "chat"), "webhook chat: the test was not accepted: the receiver answered 401")
	learn(replaced)
	contains(t, do(exitOK, "webhook", "test", "chat", "--output", "json"), `"delivered": true`)
	mu.Lock()
	status = http.StatusTeapot
	mu.Unlock()
	contains(t, do(exitFailed, "webhook", "test", "chat"), "the receiver answered 418")
	contains(t, do(exitOK, "webhook", "dead", "chat"), "Webhook chat has not given up on any news.")
	contains(t, do(exitOK, "webhook", "resend", "chat"), "Webhook chat: 0 accepted, 0 left.")
	contains(t, do(exitFailed, "webhook", "resend", "chat", "msg_1"), "has no dead news of these ids")
	contains(t, do(exitOK, "delete", "webhook/chat"), "Deleted webhook chat of tenant acme.")
	contains(t, do(exitFailed, "webhook", "test", "chat"), `tenant "acme" has no webhook chat; it has script-mail, script-sms`)
}

// TestWebhookMisuse checks what is said to who types something wrong.
func TestWebhookMisuse(t *testing.T) {
	t.Parallel()
	do := newsSite(t)
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte("whsec_c3dvcmRmaXNo\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		code int
		args []string
		want string
	}{
		{exitUsage, []string{"add", "chat", "--url", "http://hooks.example/"}, "is not https"},
		{exitUsage, []string{"add", "chat", "--url", "https://hooks.example/", "--news", "run.opend"}, "run.opened"},
		{exitUsage, []string{"add", "chat", "--url", "https://hooks.example/", "--secret-file", file}, "the secret is not whsec_ and the base64 of 24 to 64 bytes"},
		{exitUsage, []string{"add", "chat", "--url", "https://hooks.example/", "--secret-file", file, "--new-secret"}, "not both"},
		{exitFailed, []string{"add", "No", "--url", "https://hooks.example/"}, `webhook "No" is not a name`},
		{exitFailed, []string{"add", "script-mail", "--url", "https://hooks.example/"}, "are those of the site's news scripts"},
		{exitFailed, []string{"dead", "none"}, "has no webhook none; it has script-mail, script-sms"},
		{exitFailed, []string{"resend", "none"}, "has no webhook none; it has script-mail, script-sms"},
	} {
		if got := do(row.code, append([]string{"webhook"}, row.args...)...); !strings.Contains(got, row.want) || strings.Contains(got, "c3dvcmRmaXNo") {
			t.Errorf("%q prints\n%s", row.args, got)
		}
	}
}

// TestUnknownWebhook checks that the error about a webhook that is not there says how to declare
// one where there is none.
func TestUnknownWebhook(t *testing.T) {
	t.Parallel()
	d, err := dev.Start(t.Context(), dev.Options{Dir: t.TempDir(), Hosts: 0})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	code, _, stderr := call(t, as(t, d.Endpoint, d.Token, d.Tenant, "webhook", "test", "chat")...)
	if code != exitFailed || !strings.Contains(stderr, "has no webhook chat; it has none; to declare one: osupgrade-agent webhook add NAME") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

// TestNewsScriptsByCommands checks that the scripts of the site are shown to its tenants, and
// what they print is not.
func TestNewsScriptsByCommands(t *testing.T) {
	t.Parallel()
	do := newsSite(t)
	contains(t, do(exitOK, "webhook", "test", "script-mail"), "The receiver of webhook script-mail has accepted test")
	contains(t, do(exitOK, "webhook", "list"), "script-mail", "script-sms", "a script of the site")
	refused := do(exitFailed, "webhook", "test", "script-sms")
	if contains(t, refused, "the script failed: exit status 1"); strings.Contains(refused, "credit") {
		t.Errorf("a tenant is shown what a script of the site prints:\n%s", refused)
	}
	contains(t, do(exitOK, "webhook", "dead", "script-sms"), "Webhook script-sms has not given up on any news.")
}
