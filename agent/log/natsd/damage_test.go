package natsd

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nkeys"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/credential"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/guard"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/jetstream"
	files "github.com/osupgrade/terraform-provider-osupgrade/agent/log/natsd/store"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/store"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/credentialtest"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/formattest"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/format"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/report"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// ways are how a file may be damaged at rest.
var ways = map[string]func(path string, body []byte) error{
	"first bit flipped":  func(path string, body []byte) error { return write(path, flip(body, 0)) },
	"middle bit flipped": func(path string, body []byte) error { return write(path, flip(body, len(body)/2)) },
	"cut to half":        func(path string, body []byte) error { return write(path, body[:len(body)/2]) },
	"cut by a byte":      func(path string, body []byte) error { return write(path, body[:max(len(body)-1, 0)]) },
	"emptied":            func(path string, _ []byte) error { return write(path, nil) },
	"zeroed":             func(path string, body []byte) error { return write(path, make([]byte, len(body))) },
	"removed":            func(path string, _ []byte) error { return os.Remove(path) },
}

func write(path string, body []byte) error { return os.WriteFile(path, body, 0o600) }

func read(t *testing.T, path string) []byte {
	t.Helper()
	body, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

func flip(body []byte, at int) []byte {
	flipped := bytes.Clone(body)
	if at < len(flipped) {
		flipped[at] ^= 4
	}
	return flipped
}

// filled makes a store with something of each kind in it, once with its server
// stopped, once as a crash would leave it.
func filled(t *testing.T) (stopped, crashed string) {
	t.Helper()
	stopped, crashed = t.TempDir(), t.TempDir()
	s, _, err := open(t, stopped)
	if err != nil {
		t.Fatal(err)
	}
	nc, err := s.Connect()
	if err != nil {
		t.Fatal(err)
	}
	log, err := jetstream.Open(t.Context(), nc, "acme")
	if err != nil {
		t.Fatal(err)
	}
	guards, err := guard.OpenFile(filepath.Join(stopped, "guard.json"))
	if err != nil {
		t.Fatal(err)
	}
	g := guards.Guard("acme")
	for i := range 10 {
		if _, err := log.Append(t.Context(), message.Record{Kind: message.EventRecord, Body: fmt.Appendf(nil, "record %d", i)}, uint64(i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := log.Read(t.Context(), 1, 10, func(r message.Record) { err = errors.Join(err, g.See(r)) }); err != nil {
		t.Fatal(err)
	}
	kept, err := store.Open(t.Context(), nc)
	if err != nil {
		t.Fatal(err)
	}
	config := func(i int) v1.OSUpgrade {
		return v1.OSUpgrade{WorkerApplications: []v1.WorkerApplication{{Name: fmt.Sprintf("app-%d", i)}}}
	}
	base := store.Revision{}
	for i := range 3 {
		base, err = kept.PutConfig(t.Context(), "acme", v1.Kept[v1.OSUpgrade]{Value: config(i)}, base)
		if err != nil {
			t.Fatal(err)
		}
	}
	_, err = kept.PutLease(t.Context(), "acme", "h01", []byte(`{"worker":"one"}`), 0)
	err = errors.Join(err, g.Keep(), kept.PutHost(t.Context(), "h01", store.Host{Tenant: "acme", Name: "h01", Application: "app"}),
		kept.PutReport(t.Context(), "acme", "h01", report.Versions.Of([]byte(`{"kernel":"6.1"}`))), kept.PutRun(t.Context(), "acme", v1.Run{ID: 7, Phase: "finished"}, 9))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.marks.mark(); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(filepath.Join(crashed, "crashed"), os.DirFS(stopped)); err != nil {
		t.Fatal(err)
	}
	nc.Close()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return stopped, filepath.Join(crashed, "crashed")
}

// inspect opens a store and returns the alarm that it raises. lost says what is
// not there any more though nothing raised one.
func inspect(t *testing.T, dir string) (lost string, alarm error) {
	t.Helper()
	s, err := Start(t.Context(), Options{Dir: filepath.Join(dir, "store"), Hosts: NewHosts(&credentialtest.Memory{}), Holder: "a test", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return "", err
	}
	defer func() { _ = s.Close() }()
	nc, err := s.Connect()
	if err != nil {
		return "", err
	}
	defer nc.Close()
	log, err := jetstream.Open(t.Context(), nc, "acme")
	if err != nil {
		return "", err
	}
	guards, err := guard.OpenFile(filepath.Join(dir, "guard.json"))
	if err != nil {
		return "", err
	}
	g := guards.Guard("acme")
	last, err := log.Last(t.Context())
	if err = errors.Join(err, g.End(last)); err != nil {
		return "", err
	}
	if err := log.Read(t.Context(), 1, last, func(r message.Record) { alarm = errors.Join(alarm, g.See(r)) }); err != nil || alarm != nil {
		return "", errors.Join(err, alarm)
	}
	kept, err := store.Open(t.Context(), nc)
	if err != nil {
		return "", err
	}
	var missing []string
	if c, _, err := kept.Config(t.Context(), "acme"); err != nil || len(c.Value.WorkerApplications) != 1 || c.Value.WorkerApplications[0].Name != "app-2" {
		missing = append(missing, fmt.Sprintf("the configuration is %+v, %v", c, err))
	}
	if h, err := kept.Hosts(t.Context(), "acme"); err != nil || len(h) != 1 {
		missing = append(missing, fmt.Sprintf("the hosts are %+v, %v", h, err))
	}
	if v, err := kept.Report(t.Context(), "acme", "h01", report.ID{Kind: report.Versions}); err != nil || len(v.Body) == 0 {
		missing = append(missing, fmt.Sprintf("the versions are %s, %v", v.Body, err))
	}
	if _, err := kept.Run(t.Context(), "acme", 7); err != nil {
		missing = append(missing, err.Error())
	}
	return strings.Join(missing, "; "), nil
}

// filesOf lists the files of the server in a store, without the lock.
func filesOf(t *testing.T, dir string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(dir, "store"), func(path string, entry fs.DirEntry, err error) error {
		if name, _ := filepath.Rel(dir, path); err == nil && entry.Type().IsRegular() && entry.Name() != "lock" && entry.Name() != marksName {
			names = append(names, name)
		}
		return err
	})
	if err != nil || len(names) < 15 {
		t.Fatalf("the store has the files %v, %v", names, err)
	}
	return names
}

// sealName and marksName are the files that package store keeps in the folder.
const (
	sealName  = "seal.json"
	marksName = "store-marks.json"
)

// TestDamageAtRest checks that whatever happens to a file of a store while
// nobody runs on it is noticed before anything is done with it.
func TestDamageAtRest(t *testing.T) {
	t.Parallel()
	dir, _ := filled(t)
	copied := filepath.Join(t.TempDir(), "intact")
	if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	if lost, err := inspect(t, copied); err != nil || lost != "" {
		t.Fatalf("an intact store: %v, %s", err, lost)
	}
	for _, name := range filesOf(t, dir) {
		path := filepath.Join(dir, name)
		body, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for way, damage := range ways {
			if filepath.Base(name) == "index.db" || filepath.Base(name) == sealName && way == "removed" || len(body) == 0 && way != "removed" {
				continue // See TestDamageAfterCrash.
			}
			if err := damage(path, body); err != nil {
				t.Fatal(err)
			}
			var damage *files.Damage
			if _, err := files.Check(filepath.Join(dir, "store")); !errors.As(err, &damage) {
				t.Errorf("%s %s: it is not noticed: %v", name, way, err)
			}
			if err := write(path, body); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestDamageAfterCrash checks the same for a store without a seal: what is
// damaged is noticed, or nothing is lost.
func TestDamageAfterCrash(t *testing.T) {
	t.Parallel()
	_, dir := filled(t)
	for _, name := range filesOf(t, dir) {
		for way, damage := range ways {
			t.Run(name+" "+way, func(t *testing.T) {
				t.Parallel()
				copied := filepath.Join(t.TempDir(), "copy")
				if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
					t.Fatal(err)
				}
				path := filepath.Join(copied, name)
				body, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				if err := damage(path, body); err != nil {
					t.Fatal(err)
				}
				if lost, err := inspect(t, copied); err == nil && lost != "" {
					t.Error(lost)
				}
			})
		}
	}
}

// TestDamagedHost checks that a damaged file of a host lets no other host in.
func TestDamagedHost(t *testing.T) {
	t.Parallel()
	keys := &credentialtest.Memory{}
	hosts := NewHosts(keys)
	want := Identity{Tenant: "acme", Host: "h01"}
	seed, err := hosts.Add(want)
	if err != nil {
		t.Fatal(err)
	}
	key, err := nkeys.FromSeed(seed)
	if err != nil {
		t.Fatal(err)
	}
	public, err := key.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	body, err := keys.Get(public)
	if err != nil {
		t.Fatal(err)
	}
	for at := range body {
		for bit := range 8 {
			damaged := bytes.Clone(body)
			damaged[at] ^= 1 << bit
			if err := credential.Put(keys, public, damaged); err != nil {
				t.Fatal(err)
			}
			if id, known, err := hosts.Find(public); err == nil && known && id != want {
				t.Errorf("%s lets in %+v", damaged, id)
			}
		}
	}
	if err := credential.Put(keys, public, []byte(`{"format":2,"hosts":["h01"]}`)); err != nil {
		t.Fatal(err)
	}
	if id, known, err := hosts.Find(public); known || err == nil || !strings.Contains(err.Error(), "written by format 2, this version reads 1") {
		t.Errorf("a file of another format is read as %+v, %v, %v", id, known, err)
	}
}

// TestHostKeyFormat holds the file of a key against the fixture of format 1, and
// reads it.
func TestHostKeyFormat(t *testing.T) {
	t.Parallel()
	keys := &credentialtest.Memory{}
	hosts := NewHosts(keys)
	want := Identity{Tenant: "acme", Host: "h01"}
	const public = "UCKP7GWOONUEZU3A7VS5ZIN7BMNB4OJVCM6KWR4RH4WNAY6FU7FEDCBI"
	file := hostFile{Identity: want}
	file.Sum = file.sum(public)
	body, err := format.HostKey.Encode(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := credential.Put(keys, public, formattest.Golden(t, "testdata/format1/"+public+".json", append(body, '\n'))); err != nil {
		t.Fatal(err)
	}
	if id, known, err := hosts.Find(public); err != nil || !known || id != want {
		t.Errorf("it is read as %+v, %v, %v", id, known, err)
	}
}
