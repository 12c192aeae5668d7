//go:build !worker

package cli

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// credentials runs a command on the credentials of a folder.
func credentials(t *testing.T, dir string, args ...string) (code int, out string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code = Run(t.Context(), "test", append([]string{"credentials", args[0], "--data", dir}, args[1:]...), strings.NewReader(""), &stdout, io.MultiWriter(&stderr, &stdout))
	return code, stdout.String()
}

// TestKeptCredentials makes tokens and keys, lists and removes them. No list shows
// a secret.
func TestKeptCredentials(t *testing.T) {
	t.Parallel()
	dir := servedFolder(t, "acme")
	run := func(want int, args ...string) string {
		t.Helper()
		code, out := credentials(t, dir, args...)
		if code != want {
			t.Fatalf("%v ends with %d: %s", args, code, out)
		}
		return out
	}
	if code, out := credentials(t, t.TempDir(), "list"); code != exitFailed || !strings.Contains(out, "is not the folder of a site") {
		t.Errorf("a folder without credentials: exit code %d: %s", code, out)
	}
	secret := strings.TrimSpace(run(exitOK, "token", "--tenant", "acme", "--name", "ci", "--allow", "read", "--valid", "90d"))
	run(exitOK, "token", "--tenant", "*", "--name", "ann")
	run(exitOK, "host", "--tenant", "acme", "--host", "h01", "--out", filepath.Join(dir, "h01.key"))
	out := run(exitOK, "list")
	want := regexp.MustCompile(`^ID +KIND +TENANT +OWNER +MADE +LAST USED +ALLOWS
(U\w{11}) +key +acme +h01 +\S+ \S+ \S+ CES?T +- *
(\w{12}) +token +\* +ann +\S+ \S+ \S+ CES?T +- +read write start
(\w{12}) +token +acme +ci +\S+ \S+ \S+ CES?T +- +read until \S+ \S+ \S+ CES?T
$`)
	found := want.FindStringSubmatch(out)
	if found == nil || strings.Contains(out, secret) {
		t.Fatalf("it lists\n%s", out)
	}
	next := strings.TrimSpace(run(exitOK, "rotate", found[3], "--overlap", "1h"))
	if out := run(exitOK, "list"); !strings.HasPrefix(next, "osu_") || next == secret || strings.Count(out, " ci ") != 2 || strings.Contains(out, next) {
		t.Errorf("after the rotation to %s it lists\n%s", next, out)
	}
	if out := run(exitUsage, "rotate", found[1]); !strings.Contains(out, "is the id of a key, which is rotated on its host") {
		t.Errorf("it says %s", out)
	}
	for id, says := range map[string]string{found[1]: "Removed the key of h01 of tenant acme: a worker", found[3][:leastID]: "Removed the token of ci of tenant acme: the next request"} {
		if out := run(exitOK, "remove", id); !strings.Contains(out, says) {
			t.Errorf("it says %s", out)
		}
		if out := run(exitFailed, "remove", id); !strings.Contains(out, "is the id of no token, user, approle and host key") {
			t.Errorf("it says %s", out)
		}
	}
	if out := run(exitUsage, "remove", "U"); !strings.Contains(out, "too short") {
		t.Errorf("it says %s", out)
	}
	if out := run(exitOK, "list"); strings.Count(out, "\n") != 3 || !strings.Contains(out, found[2]) {
		t.Errorf("it lists\n%s", out)
	}
}

// TestDamagedCredentials lists files that nobody can read, so that they can be
// removed.
func TestDamagedCredentials(t *testing.T) {
	t.Parallel()
	dir := servedFolder(t, "acme")
	credentials(t, dir, "token", "--tenant", "acme", "--name", "ci")
	for _, path := range []string{"tokens/0123456789abcdef.json", "tokens/0123456789abcdee.json", "hosts/nonsense.json"} {
		path = filepath.Join(dir, "credentials", path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	code, out := credentials(t, dir, "list")
	for _, part := range []string{"0123456789ab  token  ?", "nonsense      key    ?", "cannot read a token's file", "is not the name of a host key"} {
		if code != exitOK || !strings.Contains(out, part) {
			t.Errorf("there is no %q in\n%s", part, out)
		}
	}
	if code, out := credentials(t, dir, "remove", "0123456789abcd"); code != exitUsage || !strings.Contains(out, "use more of it") {
		t.Errorf("it ends with %d: %s", code, out)
	}
	if code, out := credentials(t, dir, "remove", "nonsense"); code != exitOK {
		t.Errorf("it ends with %d: %s", code, out)
	}
}
