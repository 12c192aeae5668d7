package site

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/access"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/principal"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/jetstream"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/store"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// openTwo starts a site of two tenants on a folder.
func openTwo(t *testing.T, dir string) *Site {
	t.Helper()
	s, err := Open(t.Context(), Options{
		Name: "test", Zone: time.UTC, Dir: dir, Tenants: []string{"acme", "beta"}, API: Endpoint{Listen: "127.0.0.1:0"},
		Holder: "a test", Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func closeSite(t *testing.T, s *Site) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// logOf opens the log of a tenant of a site that runs.
func logOf(t *testing.T, s *Site, tenant string) *jetstream.Log {
	t.Helper()
	nc, err := s.Server().Connect()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	l, err := jetstream.Open(t.Context(), nc, tenant)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// fill writes something of each kind, and returns the revision of the configuration.
func fill(t *testing.T, s *Site) (store.Revision, string) {
	t.Helper()
	revision, err := s.Store().PutConfig(t.Context(), "acme", v1.Kept[v1.OSUpgrade]{Value: v1.OSUpgrade{WorkerApplications: []v1.WorkerApplication{{Name: "appliance"}}}}, store.Revision{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Logins.WriteUser(t.Context(), principal.User{Tenant: "acme", Name: "ann", Allow: access.Rights()}, "correct horse", nil, time.Now()); err != nil {
		t.Fatal(err)
	}
	token, err := s.Tokens.Add(principal.Token{Name: "ci", Tenant: "acme", Allow: access.Rights()})
	if err != nil {
		t.Fatal(err)
	}
	l, last := logOf(t, s, "acme"), uint64(0)
	for i := range 50 {
		if last, err = l.Append(t.Context(), message.Record{Kind: message.EventRecord, Body: fmt.Appendf(nil, "event %d", i)}, last); err != nil {
			t.Fatal(err)
		}
	}
	return revision, token
}

// TestBackup checks that a backup of a site that runs, and of one that does not, has all
// that the site keeps; that a restored site has it under a new identity, goes on beyond
// the numbers that were given out, and takes no revision of before.
func TestBackup(t *testing.T) {
	t.Parallel()
	for name, running := range map[string]bool{"of a site that runs": true, "of a site that is stopped": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// The address of a socket has room for 107 bytes.
			dir := filepath.Join(t.TempDir(), strings.Repeat("long", 30))
			s := openTwo(t, dir)
			base, token := fill(t, s)
			before := logOf(t, s, "acme").Identity()
			if !running {
				closeSite(t, s)
			}
			file, logger := filepath.Join(t.TempDir(), "site.tar"), slog.New(slog.DiscardHandler)
			if err := Backup(t.Context(), dir, file, logger); err != nil {
				t.Fatal(err)
			}
			if err := Backup(t.Context(), dir, file, logger); err == nil || !strings.Contains(err.Error(), "exists; name a new file") {
				t.Errorf("a backup was written over: %v", err)
			}
			if left, err := filepath.Glob(filepath.Join(filepath.Dir(file), "*")); err != nil || len(left) != 1 {
				t.Errorf("beside the backup there are %v, %v", left, err)
			}
			if running {
				closeSite(t, s)
			}
			if err := Restore(t.Context(), file, dir, Secrets{}, 10, new(bytes.Buffer), logger); err == nil || !strings.Contains(err.Error(), "a site is in") {
				t.Errorf("a site was written over: %v", err)
			}
			restored, out := filepath.Join(t.TempDir(), "new"), new(bytes.Buffer)
			if err := Restore(t.Context(), file, restored, Secrets{}, 10, out, logger); err != nil {
				t.Fatal(err)
			}
			if want := "Tenant acme: Nothing is missing. Run numbers continue at 61, so that none is used twice."; !strings.Contains(out.String(), want) {
				t.Errorf("it says %s", out)
			}
			checkRestored(t, restored, before, token, base)
		})
	}
}

// checkRestored checks a site that was restored from a backup of fill.
func checkRestored(t *testing.T, dir, before, token string, base store.Revision) {
	t.Helper()
	s := openTwo(t, dir)
	defer closeSite(t, s)
	l := logOf(t, s, "acme")
	if l.Identity() == before {
		t.Error("the log has the identity of before")
	}
	bodies := map[uint64]string{}
	if err := l.Read(t.Context(), 1, 60, func(r message.Record) { bodies[r.Seq] = string(r.Body) }); err != nil {
		t.Fatal(err)
	}
	if bodies[1] != "event 0" || bodies[50] != "event 49" || bodies[51] != `{"event":"skipped","to":61}` || bodies[60] != bodies[51] {
		t.Errorf("the log has %v", bodies)
	}
	if last, err := l.Last(t.Context()); err != nil || last != 60 {
		t.Errorf("the log ends at %d, %v", last, err)
	}
	if err := s.Controller("acme").Ready(t.Context()); err != nil {
		t.Errorf("the site is not ready: %v", err)
	}
	config, revision, err := s.Store().Config(t.Context(), "acme")
	if err != nil || len(config.Value.WorkerApplications) != 1 || revision.Number != base.Number {
		t.Errorf("the configuration is %+v of %s, %v", config, revision, err)
	}
	if _, err := s.Store().PutConfig(t.Context(), "acme", config, base); !errors.Is(err, store.ErrConflict) {
		t.Errorf("a revision of before is taken: %v", err)
	}
	if _, err := s.Store().PutConfig(t.Context(), "acme", config, revision); err != nil {
		t.Errorf("the revision of now is not taken: %v", err)
	}
	if _, err := s.Tokens.Find(token, time.Now()); err != nil {
		t.Errorf("the token is not taken: %v", err)
	}
	if _, err := s.Logins.User(t.Context(), "", "acme", "ann", "correct horse", time.Now); err != nil {
		t.Errorf("the user is not logged in: %v", err)
	}
}

// TestDamagedBackup checks that a backup that was cut short or changed anywhere is not
// restored, and leaves nothing behind.
func TestDamagedBackup(t *testing.T) {
	t.Parallel()
	dir, file := t.TempDir(), filepath.Join(t.TempDir(), "site.tar")
	s := openTwo(t, dir)
	fill(t, s)
	err := Backup(t.Context(), dir, file, slog.New(slog.DiscardHandler))
	closeSite(t, s)
	if err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	flipped := bytes.Clone(whole)
	flipped[bytes.Index(whole, []byte("streams/OSU_acme/000001"))+1024] ^= 1
	for name, body := range map[string][]byte{
		"empty": nil, "cut in half": whole[:len(whole)/2], "without its list": whole[:bytes.LastIndex(whole, []byte(listName))-10],
		"a bit flipped": flipped, "no tar file": []byte(strings.Repeat("x", 4096)),
		"of a newer version": bytes.Replace(whole, []byte(`{"format":1,"at"`), []byte(`{"format":9,"at"`), 1),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			damaged, to := filepath.Join(t.TempDir(), "site.tar"), filepath.Join(t.TempDir(), "new")
			if err := os.WriteFile(damaged, body, 0o600); err != nil {
				t.Fatal(err)
			}
			err := Restore(t.Context(), damaged, to, Secrets{}, 10, new(bytes.Buffer), slog.New(slog.DiscardHandler))
			if err == nil || !strings.Contains(err.Error(), "the backup is no good") {
				t.Errorf("it is restored: %v", err)
			}
			if left, err := os.ReadDir(to); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("it left the folder with %v, %v", left, err)
			}
		})
	}
}

// TestRecoverDamage checks that what says that the records are not those of before is
// accepted, and that damaged records are not.
func TestRecoverDamage(t *testing.T) {
	t.Parallel()
	if err := Recover(t.Context(), t.TempDir(), 10, new(bytes.Buffer), slog.New(slog.DiscardHandler)); !errors.Is(err, ErrNoSite) {
		t.Errorf("without a site it is %v", err)
	}
	dir := t.TempDir()
	s := openTwo(t, dir)
	fill(t, s)
	closeSite(t, s)
	marks := filepath.Join(dir, "store", "seal.json")
	if err := os.WriteFile(marks, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), Options{Name: "test", Zone: time.UTC, Dir: dir, API: Endpoint{Listen: "127.0.0.1:0"}, Holder: "a test", Log: slog.New(slog.DiscardHandler)}); err == nil {
		t.Fatal("a damaged seal is no error")
	}
	out := new(bytes.Buffer)
	if err := Recover(t.Context(), dir, 10, out, slog.New(slog.DiscardHandler)); err != nil || !strings.Contains(out.String(), "seal.json cannot be read") {
		t.Fatalf("it is not recovered: %v, %s", err, out)
	}
	closeSite(t, openTwo(t, dir))
	guards := filepath.Join(dir, "guard.json")
	if err := os.WriteFile(guards, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	out.Reset()
	if err := Recover(t.Context(), dir, 10, out, slog.New(slog.DiscardHandler)); err != nil || !strings.Contains(out.String(), "Accepted: the file "+guards+", which guards the logs, is damaged") {
		t.Fatalf("it is not recovered: %v, %s", err, out)
	}
	closeSite(t, openTwo(t, dir))
	blocks, err := filepath.Glob(filepath.Join(dir, "store", "jetstream", "*", "streams", "OSU_acme", "msgs", "*.blk"))
	if err != nil || len(blocks) == 0 {
		t.Fatal(err)
	}
	body, err := os.ReadFile(blocks[0])
	if err != nil {
		t.Fatal(err)
	}
	body[bytes.Index(body, []byte("event 7"))] ^= 1
	if err := errors.Join(os.WriteFile(blocks[0], body, 0o600), os.Remove(marks)); err != nil {
		t.Fatal(err)
	}
	if err := Recover(t.Context(), dir, 10, out, slog.New(slog.DiscardHandler)); err == nil {
		t.Error("damaged records are accepted")
	}
}

// copyTo copies a folder as an administrator does.
func copyTo(t *testing.T, from, to string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), "cp", "-a", from, to).CombinedOutput(); err != nil {
		t.Fatalf("cannot copy %s: %v: %s", from, err, out)
	}
}

// refused checks that a site does not start on a folder, and says why, and starts once it
// was recovered.
func refused(t *testing.T, dir, why string) {
	t.Helper()
	_, err := Open(t.Context(), Options{Name: "test", Zone: time.UTC, Dir: dir, API: Endpoint{Listen: "127.0.0.1:0"}, Holder: "a test", Log: slog.New(slog.DiscardHandler)})
	if err == nil || !strings.Contains(err.Error(), why) {
		t.Fatalf("the site starts with %v, and does not say %q", err, why)
	}
	if err := Recover(t.Context(), dir, 10, new(bytes.Buffer), slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
}

// TestAcknowledgedWriteIsLost checks that an acknowledged write of the configuration
// whose record lost its last byte, as a disk may have it after a kill, does not come
// back as the older revision without a word, however short after it that is.
func TestAcknowledgedWriteIsLost(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "site")
	s := openTwo(t, dir)
	defer closeSite(t, s)
	base, _ := fill(t, s)
	for i := range 5 {
		config := v1.Kept[v1.OSUpgrade]{Value: v1.OSUpgrade{WorkerApplications: []v1.WorkerApplication{{Name: fmt.Sprint("appliance-", i)}}}}
		written, err := s.Store().PutConfig(t.Context(), "acme", config, base)
		if err != nil {
			t.Fatal(err)
		}
		base = written
		killed := filepath.Join(t.TempDir(), "killed")
		copyTo(t, dir, killed)
		blocks, err := filepath.Glob(filepath.Join(killed, "store", "jetstream", "*", "streams", "KV_osu-intent", "msgs", "*.blk"))
		if err != nil || len(blocks) != 1 {
			t.Fatalf("there are %v, %v", blocks, err)
		}
		info, err := os.Stat(blocks[0])
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(blocks[0], info.Size()-1); err != nil {
			t.Fatal(err)
		}
		refused(t, killed, fmt.Sprintf("KV_osu-intent ends at record %d, and record %d had been there", base.Number-1, base.Number))
	}
}

// TestOlderStore checks that an older store that is put in place of a site's is found out
// though no run came since, and that a revision of before is not taken on it.
func TestOlderStore(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "site")
	s := openTwo(t, dir)
	first, _ := fill(t, s)
	closeSite(t, s)
	copyTo(t, filepath.Join(dir, "store"), filepath.Join(dir, "old"))
	s = openTwo(t, dir)
	second, err := s.Store().PutConfig(t.Context(), "acme", v1.Kept[v1.OSUpgrade]{Value: v1.OSUpgrade{WorkerApplications: []v1.WorkerApplication{{Name: "second"}}}}, first)
	if err != nil {
		t.Fatal(err)
	}
	closeSite(t, s)
	if err := errors.Join(os.RemoveAll(filepath.Join(dir, "store")), os.Rename(filepath.Join(dir, "old"), filepath.Join(dir, "store"))); err != nil {
		t.Fatal(err)
	}
	refused(t, dir, "KV_osu-intent ends at record 1, and record 2 had been there")
	s = openTwo(t, dir)
	defer closeSite(t, s)
	config, now, err := s.Store().Config(t.Context(), "acme")
	if err != nil || config.Value.WorkerApplications[0].Name != "appliance" {
		t.Fatalf("the configuration is %+v, %v", config, err)
	}
	third, err := s.Store().PutConfig(t.Context(), "acme", config, now)
	if err != nil || third == second {
		t.Errorf("the revision %s is given out again: %v", third, err)
	}
	if _, err := s.Store().PutConfig(t.Context(), "acme", config, second); !errors.Is(err, store.ErrConflict) {
		t.Errorf("a revision that was lost is taken: %v", err)
	}
}
