//go:build !worker

package cli

import (
	"crypto/tls"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/site"
)

// TestUserCertificate makes a certificate for a user and revokes it: who may read the files,
// what is on record, and that nothing of the key is printed or recorded.
func TestUserCertificate(t *testing.T) {
	t.Parallel()
	data, out := servedFolder(t, "acme"), t.TempDir()
	if code, _, stderr := call(t, "credentials", "user", "--data", data, "--tenant", "acme", "--name", "ann", "--allow", "viewer"); code != exitOK {
		t.Fatal(stderr)
	}
	args := []string{"credentials", "certificate", "--data", data, "--tenant", "acme", "--name", "ann", "--out", out, "--valid", "12h"}
	code, stdout, stderr := call(t, args...)
	if code != exitOK || !strings.Contains(stdout, "Made an authority for users: "+data+"/tls/client-ca.pem.\n") {
		t.Fatalf("%d %s%s", code, stdout, stderr)
	}
	for file, mode := range map[string]os.FileMode{"ann.pem": 0o644, "ann.key": 0o600} {
		if info, err := os.Stat(filepath.Join(out, file)); err != nil || info.Mode() != mode {
			t.Errorf("%s: %v, %v", file, info, err)
		}
	}
	pair, err := tls.LoadX509KeyPair(filepath.Join(out, "ann.pem"), filepath.Join(out, "ann.key"))
	if err != nil || pair.Leaf.Subject.String() != "CN=ann,O=acme" {
		t.Fatalf("the certificate is that of %v, %v", pair.Leaf.Subject, err)
	}
	serial := pair.Leaf.SerialNumber.Text(16)
	if !regexp.MustCompile(`It is good until \S+Z, serial number ` + serial + `\.\nA site takes it with serve --client-ca-file \S+/client-ca.pem --client-crl-file \S+/client-crl.pem\.\n$`).MatchString(stdout) {
		t.Errorf("it says %s", stdout)
	}
	for _, want := range []string{"Revoked the certificate: " + data + "/tls/client-crl.pem.", "The certificate was revoked before."} {
		if code, stdout, stderr := call(t, "credentials", "revoke", "--data", data, "serial="+strings.ToUpper(serial)); code != exitOK || !strings.Contains(stdout, want) {
			t.Errorf("%d %s%s", code, stdout, stderr)
		}
	}
	logs := site.OpenAudit(data)
	var recorded string
	for _, tenant := range []string{"acme", "*"} {
		read, err := logs.Read(tenant, v1.AuditFilter{})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range read.Records {
			recorded += r.Action + " " + r.Object + " " + r.Detail + "\n"
		}
	}
	if !strings.Contains(recorded, "create certificate/"+serial+" of user ann, until ") || !strings.Contains(recorded, "revoke certificate/"+serial) {
		t.Errorf("on record are\n%s", recorded)
	}
	// Made again, it has another key and the same authority.
	if code, stdout, stderr := call(t, args...); code != exitOK || strings.Contains(stdout, "Made an authority") {
		t.Errorf("%d %s%s", code, stdout, stderr)
	}
}

// TestWrongUserCertificate checks that what is wrong makes nothing, and is told with what would
// be right.
func TestWrongUserCertificate(t *testing.T) {
	t.Parallel()
	data, out := servedFolder(t, "acme"), t.TempDir()
	if code, _, stderr := call(t, "credentials", "user", "--data", data, "--tenant", "acme", "--name", "ann", "--allow", "viewer"); code != exitOK {
		t.Fatal(stderr)
	}
	t.Cleanup(func() {
		if left, err := os.ReadDir(out); err != nil || len(left) > 0 {
			t.Errorf("made are %v, %v", left, err)
		}
	})
	args := func(name string, more ...string) []string {
		return append([]string{"credentials", "certificate", "--data", data, "--tenant", "acme", "--name", name, "--out", out}, more...)
	}
	try(t, map[string]use{
		"of nobody":             {args("bob"), exitFailed, `tenant acme has no user "bob", and a certificate makes none; make the user with osupgrade-agent credentials user`},
		"of a path":             {args("../ann"), exitFailed, "has no user"},
		"of another tenant":     {args("ann", "--tenant", "beta"), exitFailed, `tenant beta has no user "ann"`},
		"of no folder":          {args("ann", "--data", out+"/none"), exitFailed, "is not the folder of a site"},
		"into no folder":        {args("ann", "--out", out+"/none"), exitFailed, "out: " + out + "/none is no folder; make it"},
		"too short":             {args("ann", "--valid", "1s"), exitUsage, "valid: 1s is not from 1m to 397d"},
		"too long":              {args("ann", "--valid", "398d"), exitUsage, "is not from 1m to 397d"},
		"to revoke with no one": {[]string{"credentials", "revoke", "--data", data, "4f2a"}, exitFailed, "this site has no authority of users"},
		"to revoke nothing":     {[]string{"credentials", "revoke", "--data", data, "h01"}, exitFailed, `"h01" is not the serial number of a certificate`},
		"a key that others may read": {
			[]string{"status", "--tenant", "acme", "--endpoint", "https://127.0.0.1:1", "--client-cert-file", writeIn(t, t.TempDir())("x.pem", ""), "--client-key-file", openFile(t)}, exitFailed, "client-key-file: ",
		},
		"a certificate that is not there": {
			[]string{"status", "--tenant", "acme", "--endpoint", "http://127.0.0.1:1", "--client-cert-file", out + "/none.pem"}, exitFailed, "client-cert-file: open",
		},
	})
}

// openFile returns a file that others may read.
func openFile(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "open.key")
	if err := os.WriteFile(file, nil, 0o644); err != nil { //nolint:gosec // that is what it is for
		t.Fatal(err)
	}
	return file
}
